/** Log-probabilities in the shape of completions: of the answer, and of a prompt that is echoed. */

import { contentToken } from "../../chat/answer/answer-tokens.ts";
import type { ContentToken } from "../../chat/types.ts";
import type { ModelInfo } from "../../engine/types.ts";
import { tokenName, tokenText, wireLogprob } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import {
  answer,
  dictionary,
  list,
  nullable,
  real,
  string,
  type ValueOf,
  whole,
} from "../body/shapes.ts";

export const textLogprobsShape = answer({
  tokens: list(string),
  // Null of the first token of a prompt that is echoed.
  token_logprobs: list(nullable(real)),
  // The likeliest tokens and the one that came, as OpenAI has them.
  top_logprobs: list(nullable(dictionary(real))),
  // Where each token begins in the choice's text, in UTF-16 units.
  text_offset: list(whole),
});
export type TextLogprobs = ValueOf<typeof textLogprobsShape>;

type EchoedToken = ContentToken | { token: number; bytes: Uint8Array; logprob: null };

/** @param start where the first token begins; below 0, the text lacks its beginning */
export function textLogprobs(
  tokens: readonly EchoedToken[],
  start: number,
  namesAsIds: boolean,
): TextLogprobs {
  const logprobs: TextLogprobs = {
    tokens: [],
    token_logprobs: [],
    top_logprobs: [],
    text_offset: [],
  };
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let offset = start;
  for (const one of tokens) {
    logprobs.tokens.push(tokenName(one, namesAsIds));
    logprobs.token_logprobs.push(one.logprob === null ? null : wireLogprob(one.logprob));
    logprobs.top_logprobs.push(one.logprob === null ? null : likeliest(one, namesAsIds));
    logprobs.text_offset.push(Math.max(0, offset));
    // A token inside a character begins where the character does.
    offset += decoder.decode(one.bytes, { stream: true }).length;
  }
  return logprobs;
}

/** Two tokens may have one text: the likelier one has the entry. */
function likeliest(one: ContentToken, namesAsIds: boolean): Record<string, number> {
  const entries = one.top.map(({ logprob, ...token }): [string, number] => [
    tokenName(token, namesAsIds),
    wireLogprob(logprob),
  ]);
  const own: [string, number] = [tokenName(one, namesAsIds), wireLogprob(one.logprob)];
  return Object.fromEntries([...entries, own].reverse());
}

/** @param prefix the prompt's text */
export function echoedLogprobs(
  { prompt, promptLogprobs }: TokenRecord,
  prefix: string,
  {
    model: { bosToken },
    tokenBytes,
    namesAsIds,
  }: {
    model: Pick<ModelInfo, "bosToken">;
    tokenBytes(token: number): Uint8Array;
    namesAsIds: boolean;
  },
): TextLogprobs {
  const tokens = Array.from(prompt, (token, index): EchoedToken => {
    const told = promptLogprobs[index - 1];
    if (told === undefined) return { token, bytes: tokenBytes(token), logprob: null };
    return contentToken({ ...told, token }, tokenBytes);
  });
  const first = tokens[0] === undefined ? "" : tokenText(tokens[0].bytes);
  // The server has put it there.
  const isAdded = first !== "" && first === bosToken && !prefix.startsWith(bosToken);
  return textLogprobs(tokens, isAdded ? -first.length : 0, namesAsIds);
}

export function joinedLogprobs(first: TextLogprobs, second: TextLogprobs): TextLogprobs {
  return {
    tokens: [...first.tokens, ...second.tokens],
    token_logprobs: [...first.token_logprobs, ...second.token_logprobs],
    top_logprobs: [...first.top_logprobs, ...second.top_logprobs],
    text_offset: [...first.text_offset, ...second.text_offset],
  };
}
