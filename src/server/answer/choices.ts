/** Several answers to one request at the same time: OpenAI's `n`. */

import { randomInt } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { Sampling } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import { pulled, type Sink } from "../../tools/event-stream.ts";
import { AnswerCollector, type Answer } from "./collect-answer.ts";
import type { RunEvent } from "../../tools/types.ts";

export interface ChoiceEvent {
  /** From 0. */
  choice: number;
  event: RunEvent;
}

/**
 * Starts `count` answers at once. The engine computes the prompt for the first one, and the others take it from the KV
 * cache. Events come as they are ready; those of one choice stay in order. A failure of one answer, or leaving the loop,
 * ends all of them.
 */
export function runChoices(
  count: number,
  start: (choice: number, signal: AbortSignal, sink: Sink<RunEvent>) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<ChoiceEvent, void, void> {
  return pulled(async (sink) => {
    const abort = new AbortController();
    const ended = AbortSignal.any([signal, abort.signal]);
    // Each choice listens.
    setMaxListeners(0, ended);
    const runs = Array.from({ length: count }, (_, choice) =>
      start(choice, ended, async (event) => {
        abort.signal.throwIfAborted();
        await sink({ choice, event });
      }),
    );
    try {
      await Promise.all(runs);
    } finally {
      abort.abort();
      await Promise.allSettled(runs);
    }
  });
}

/** Reads all answers to their ends. @throws the error that ended one of them */
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

/** The first choice uses the request's seed, each other choice a seed that is derived from it. */
export function withSeed(sampling: Sampling, choice: number): Sampling {
  return { ...sampling, seed: (sampling.seed + choice) % 2 ** 32 };
}

export function drawSeed(): number {
  return randomInt(2 ** 32);
}
