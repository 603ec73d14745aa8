/** Log-probabilities of content tokens in the two shapes of OpenAI's wire. */

import type { ContentToken, TokenProbability } from "../../chat/types.ts";
import type { TokenLogprobs } from "../../engine/types.ts";
import type { contentToken, ValueOf } from "../body/shapes.ts";
import type { promptExtras } from "./completion-parts.ts";

/** Bytes that are no UTF-8 by themselves show as U+FFFD in `token`. */
export type WireContentToken = ValueOf<typeof contentToken>;
type WireTokenProbability = WireContentToken["top_logprobs"][number];

export interface ChatLogprobs {
  content: WireContentToken[] | null;
  refusal: null;
}

/** JSON has no minus infinity; OpenAI's stand-in. */
const impossible = -9999;

/** Null when none were asked for. An answer without content has none. */
export function chatLogprobs(
  tokens: readonly ContentToken[] | null,
  namesAsIds = false,
): ChatLogprobs | null {
  if (tokens === null) return null;
  const content = tokens.map((token) => wireContentToken(token, namesAsIds));
  return { content: content.length === 0 ? null : content, refusal: null };
}

/** As the Responses API has them, part by part. */
export function wireContentToken(token: ContentToken, namesAsIds = false): WireContentToken {
  const wire = (one: TokenProbability): WireTokenProbability => ({
    token: tokenName(one, namesAsIds),
    logprob: wireLogprob(one.logprob),
    bytes: [...one.bytes],
  });
  return { ...wire(token), top_logprobs: token.top.map(wire) };
}

/** Its text, or its id in vLLM's form. */
export function tokenName(
  { token, bytes }: Pick<TokenProbability, "token" | "bytes">,
  asId: boolean,
): string {
  return asId && token !== undefined ? `token_id:${token}` : tokenText(bytes);
}

export function tokenText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

export function wireLogprob(logprob: number): number {
  return Math.max(logprob, impossible);
}

/** vLLM's, by the id of a token. Null for `rank`: it is not among the likeliest. */
type PromptLogprobs = ValueOf<typeof promptExtras.prompt_logprobs>;

/** Of each token of the prompt with the likeliest in its place; the first token has none. */
export function wirePromptLogprobs(
  logprobs: readonly TokenLogprobs[],
  tokenBytes: (token: number) => Uint8Array,
): PromptLogprobs {
  const told = logprobs.map(({ token, logprob, top }) => {
    const entries = top.map(([id, value], index) => [id, value, index + 1] as const);
    const all = top.some(([id]) => id === token)
      ? entries
      : [[token, logprob, null] as const, ...entries];
    return Object.fromEntries(
      all.map(([id, value, rank]) => [
        id,
        { logprob: wireLogprob(value), rank, decoded_token: tokenText(tokenBytes(id)) },
      ]),
    );
  });
  return [null, ...told];
}
