/**
 * What was told of the round that the model was writing when its process ended. The next process says the round once more, from
 * its tokens: what was told is left out, and the rest follows it.
 */

import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";

export interface ToldTexts {
  content?: string;
  /** How many tokens' log-probabilities were told with the content. */
  logprobs?: number;
  reasoning: string;
  /** How much of the arguments of each call was told, in the order of the calls. Infinity: all, and that it is whole. */
  calls: readonly number[];
}

export class ToldRound {
  /** What is not said again yet. */
  readonly #left: { content: string; logprobs: number; reasoning: string; calls: number[] };

  constructor({ content = "", logprobs = 0, reasoning, calls }: ToldTexts) {
    this.#left = { content, logprobs, reasoning, calls: [...calls] };
  }

  /** What is new in an event. Null: nothing. @throws FermataError engine_crashed: something else was told */
  newPart(event: RunEvent): RunEvent | null {
    const { calls } = this.#left;
    switch (event.type) {
      case "content":
        return this.#newContent(event);
      case "reasoning": {
        const text = this.#newText("reasoning", event.text);
        return text === "" ? null : { ...event, text };
      }
      case "call-start":
        return event.index < calls.length ? null : event;
      case "call-arguments": {
        const known = calls[event.index] ?? 0;
        if (known === 0) return event;
        const delta = event.delta.slice(known);
        calls[event.index] = Math.max(0, known - event.delta.length);
        return delta === "" ? null : { ...event, delta };
      }
      case "call-end":
        return calls[event.index] === Infinity ? null : event;
      case "hold":
        // The next round counts its calls anew.
        calls.length = 0;
        return event;
      default:
        return event;
    }
  }

  #newContent(event: Extract<RunEvent, { type: "content" }>): RunEvent | null {
    const text = this.#newText("content", event.text);
    if (event.logprobs === undefined) return text === "" ? null : { ...event, text };
    const logprobs = event.logprobs.slice(this.#left.logprobs);
    this.#left.logprobs -= event.logprobs.length - logprobs.length;
    return text === "" && logprobs.length === 0 ? null : { ...event, text, logprobs };
  }

  #newText(kind: "content" | "reasoning", said: string): string {
    const told = this.#left[kind];
    const length = Math.min(told.length, said.length);
    if (told.slice(0, length) !== said.slice(0, length)) {
      const message =
        "What was told before the restart does not fit what the model writes now. Ask again.";
      throw new FermataError("engine_crashed", message);
    }
    this.#left[kind] = told.slice(length);
    return said.slice(length);
  }
}
