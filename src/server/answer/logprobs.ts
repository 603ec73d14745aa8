/** Log-probabilities of content tokens in the two shapes of OpenAI's wire. */

import type { ContentToken, TokenProbability } from "../../chat/types.ts";

interface WireTokenProbability {
  /** Bytes that are no UTF-8 by themselves show as U+FFFD. */
  token: string;
  logprob: number;
  bytes: number[];
}

export interface WireContentToken extends WireTokenProbability {
  top_logprobs: WireTokenProbability[];
}

export interface ChatLogprobs {
  content: WireContentToken[] | null;
  refusal: null;
}

/** JSON has no minus infinity; OpenAI's stand-in. */
const impossible = -9999;

/** Null when none were asked for. An answer without content has none. */
export function chatLogprobs(tokens: readonly ContentToken[] | null): ChatLogprobs | null {
  if (tokens === null) return null;
  const content = tokens.map(wireContentToken);
  return { content: content.length === 0 ? null : content, refusal: null };
}

/** As the Responses API has them, part by part. */
export function wireContentToken(token: ContentToken): WireContentToken {
  return { ...wireToken(token), top_logprobs: token.top.map(wireToken) };
}

function wireToken({ bytes, logprob }: TokenProbability): WireTokenProbability {
  return { token: tokenText(bytes), logprob: wireLogprob(logprob), bytes: [...bytes] };
}

export function tokenText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

export function wireLogprob(logprob: number): number {
  return Math.max(logprob, impossible);
}
