/** Several answers to one request, side by side: OpenAI's `n`. */

import { setMaxListeners } from "node:events";
import { FermataError } from "../../errors.ts";
import { AnswerCollector, type Answer } from "./collect-answer.ts";
import type { RunEvent } from "../../tools/types.ts";

export interface ChoiceEvent {
  /** From 0. */
  choice: number;
  event: RunEvent;
}

type ChoiceRun = AsyncGenerator<RunEvent, void, void>;

interface Step {
  choice: number;
  /** Settled. */
  next: Promise<IteratorResult<RunEvent, void>>;
}

/**
 * Starts `count` answers at once, so that the engine computes their prompt for the first of them and the
 * others take it from the KV cache. Their events come as they are ready, each choice's in its order.
 * What ends one by a failure, or leaving the loop, ends all.
 */
export async function* runChoices(
  count: number,
  start: (choice: number, signal: AbortSignal) => ChoiceRun,
  signal: AbortSignal,
): AsyncGenerator<ChoiceEvent, void, void> {
  const abort = new AbortController();
  const ended = AbortSignal.any([signal, abort.signal]);
  // Each choice listens.
  setMaxListeners(0, ended);
  const answers = Array.from({ length: count }, (_, choice) => start(choice, ended));
  // In the order in which they settled. A race of all that are awaited would leave a reaction on each of
  // them for every event of the others.
  const ready: Step[] = [];
  let wake = (): void => {};
  const ask = (choice: number): void => {
    const next = answers[choice]!.next();
    const settled = (): void => {
      ready.push({ choice, next });
      wake();
    };
    // Of several that fail, one is heard.
    next.then(settled, settled);
  };
  for (const choice of answers.keys()) ask(choice);
  let running = count;
  try {
    while (running > 0) {
      const step = ready.shift();
      if (step === undefined) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      const { done, value } = await step.next;
      if (done === true) {
        running -= 1;
        continue;
      }
      yield { choice: step.choice, event: value };
      ask(step.choice);
    }
  } finally {
    abort.abort();
    await Promise.allSettled(answers.map((answer) => answer.return()));
  }
}

/** Reads all to their ends. @throws whatever ended one */
export async function collectChoices(
  events: AsyncIterable<ChoiceEvent>,
  count: number,
): Promise<[Answer, ...Answer[]]> {
  let collected: [Answer, ...Answer[]] | null = null;
  const reading = observeChoices(events, count, async (answers) => {
    collected = answers;
  });
  for await (const _ of reading);
  if (collected === null) throw new FermataError("internal_error", "There is no choice.");
  return collected;
}

/** Passes events on, and hands the answers over before it ends. */
export async function* observeChoices(
  events: AsyncIterable<ChoiceEvent>,
  count: number,
  onEnd: (answers: [Answer, ...Answer[]]) => Promise<void>,
): AsyncGenerator<ChoiceEvent, void, void> {
  const collectors = Array.from({ length: count }, () => new AnswerCollector());
  for await (const event of events) {
    collectors[event.choice]?.add(event.event);
    yield event;
  }
  const [first, ...others] = collectors.map((collector) => collector.answer());
  if (first !== undefined) await onEnd([first, ...others]);
}
