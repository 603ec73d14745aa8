/** Fields of what a stream tells: whether there is one, its usage, its times. OpenAI's, vLLM's and llama-server's. */

import { fieldError, ignored, optional, type FieldTable, type ValuesOf } from "./field.ts";
import { boolean, object } from "./values.ts";

export const streamField = optional(boolean, "server-sent events", false);
const streamOptions = {
  include_usage: optional(boolean, "", false),
  continuous_usage_stats: optional(boolean, "", false),
  include_obfuscation: ignored("has no effect", (value) => value === false),
} satisfies FieldTable;
export const streamOptionsField = optional(
  object(streamOptions, 'Send {"include_usage": true}'),
  "`include_usage`: the last chunk has the usage; `continuous_usage_stats`, vLLM's: with it, each chunk has the counts so far. A 400 without `stream`",
);

/** llama-server's, of streams. The last event has the times unasked. */
export const timesFields = {
  timings_per_token: optional(boolean, "`true`: every event of a stream has `timings`", false),
  return_progress: optional(
    boolean,
    "`true`: a stream has events with `prompt_progress` while the prompt is read",
    false,
  ),
} satisfies FieldTable;

/** Which times a stream tells before its end. */
export interface TimesWanted {
  perToken: boolean;
  progress: boolean;
}

export function timesWanted(given: ValuesOf<typeof timesFields>): TimesWanted {
  return { perToken: given.timings_per_token, progress: given.return_progress };
}

export interface UsageWanted {
  /** The last chunk of a stream has the usage. */
  atEnd: boolean;
  /** Each chunk has the counts so far. */
  continuous: boolean;
}

/** @throws FermataError invalid_value: there is no stream */
export function usageWanted(given: {
  stream: boolean;
  stream_options: ValuesOf<typeof streamOptions> | undefined;
}): UsageWanted {
  const { stream, stream_options: options } = given;
  if (options === undefined) return { atEnd: false, continuous: false };
  if (!stream) {
    const remedy = 'Send "stream": true, or leave it out';
    throw fieldError("invalid_value", "stream_options", "is only for streams", remedy);
  }
  const { include_usage: atEnd, continuous_usage_stats: continuous } = options;
  return { atEnd, continuous: atEnd && continuous };
}
