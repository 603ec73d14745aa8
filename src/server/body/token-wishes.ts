/** vLLM's fields of what an answer tells of its tokens. */

import { optional, type FieldTable, type ValuesOf, fieldError } from "./field.ts";
import { topLogprobs } from "./generation.ts";
import { boolean } from "./values.ts";

export const tokenWishFields = {
  return_token_ids: optional(
    boolean,
    "`true`: `prompt_token_ids` and `token_ids`, also of the chunks of a stream",
    false,
  ),
  return_tokens_as_token_ids: optional(
    boolean,
    "`true`: `logprobs` name tokens by their ids, as `token_id:<id>`",
    false,
  ),
  prompt_logprobs: optional(
    topLogprobs,
    "of the prompt's tokens, each with so many alternatives; not with `stream`. Such a prompt is not taken from the cache",
  ),
} satisfies FieldTable;

export interface TokenWishes {
  ids: boolean;
  /** Tokens are named by their ids. */
  namesAsIds: boolean;
  /** So many alternatives; undefined: none are asked for. */
  promptLogprobs: number | undefined;
}

/** @throws FermataError invalid_value: a stream cannot have them */
export function tokenWishesOf(
  given: ValuesOf<typeof tokenWishFields> & { stream: boolean },
): TokenWishes {
  const { prompt_logprobs: promptLogprobs, stream } = given;
  if (promptLogprobs !== undefined && stream)
    throw fieldError("invalid_value", "prompt_logprobs", "excludes stream", 'Send "stream": false');
  return {
    ids: given.return_token_ids,
    namesAsIds: given.return_tokens_as_token_ids,
    promptLogprobs,
  };
}
