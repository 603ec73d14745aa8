/** The answers to a request that continues texts. */

import type { Sampling } from "../../engine/types.ts";
import { withSeed } from "../answer/choices.ts";
import { TokenRecord } from "../answer/token-record.ts";
import { TokenTimes } from "../answer/token-times.ts";
import type { RouteContext } from "../context.ts";

export interface TextChoice {
  /** The prompt's text, or "" where it is not told. */
  prompt: string;
  sampling: Sampling;
  times: TokenTimes;
  /** With the prompt's tokens. */
  record: TokenRecord;
}

/** `n` for each prompt, beside each other. @param textOf what is told of a prompt */
export function textChoices(
  prompts: readonly Int32Array[],
  { n, sampling }: { n: number; sampling: Sampling },
  { metrics }: Pick<RouteContext, "metrics">,
  startedAt: number,
  textOf: (prompt: Int32Array, index: number) => string,
): TextChoice[] {
  return prompts.flatMap((tokens, index) => {
    const prompt = textOf(tokens, index);
    return Array.from({ length: n }, (_, choice): TextChoice => {
      const record = new TokenRecord();
      record.prompt = tokens;
      const times = new TokenTimes(metrics, startedAt);
      return { prompt, sampling: withSeed(sampling, choice), times, record };
    });
  });
}
