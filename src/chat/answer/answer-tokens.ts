/** Which tokens of an answer are reasoning, and the log-probabilities of those that are content. */

import type { OutputEvent } from "../parser/text-parser.ts";
import type { TokenLogprobs } from "../../engine/types.ts";
import type { ContentToken } from "../types.ts";

/** Tokens whose text is this piece; a character or a held-back stop string may take several. */
interface Piece {
  /** Where the piece ends in the answer's text, in UTF-16 units. */
  end: number;
  tokens: TokenLogprobs[];
}

type BytesOf = (token: number) => Uint8Array;

export function contentToken(
  { token, logprob, top }: TokenLogprobs,
  bytesOf: BytesOf,
): ContentToken {
  return {
    token,
    bytes: bytesOf(token),
    logprob,
    top: top.map(([id, value]) => ({ token: id, bytes: bytesOf(id), logprob: value })),
  };
}

export class AnswerTokens {
  readonly #toContentToken: (logprobs: TokenLogprobs) => ContentToken;
  #pieces: Piece[] = [];
  /** Without text so far. */
  #waiting: TokenLogprobs[] = [];
  /** What no event has accounted for; markers and blanks between parts never are. */
  #text = "";
  #start = 0;

  constructor(bytesOf: BytesOf) {
    this.#toContentToken = (logprobs) => contentToken(logprobs, bytesOf);
  }

  /** Tells of text before its events are attributed. */
  add(text: string, logprobs: TokenLogprobs[]): void {
    this.#waiting.push(...logprobs);
    if (text === "") return;
    this.#text += text;
    this.#pieces.push({ end: this.#start + this.#text.length, tokens: this.#waiting });
    this.#waiting = [];
  }

  /**
   * Content events with the tokens that they are made of. Events come in the order of the text and
   * hold pieces of it verbatim, as late in it as they can be: all but what is held back is told.
   */
  attribute(events: OutputEvent[]): OutputEvent[] {
    return events.map((event) => {
      if (event.type === "content") {
        const tokens = this.#take(event.text);
        return tokens.length === 0 ? event : { ...event, logprobs: tokens };
      }
      if (event.type === "reasoning") this.#take(event.text);
      else if (event.type === "call-arguments") this.#take(event.delta);
      return event;
    });
  }

  /** Those that no text came of, such as the token that ends an answer. */
  takeSilent(): ContentToken[] {
    const tokens = this.#waiting.map(this.#toContentToken);
    this.#waiting = [];
    return tokens;
  }

  #take(text: string): ContentToken[] {
    const at = text === "" ? -1 : this.#text.lastIndexOf(text);
    if (at < 0) return [];
    const from = this.#start + at;
    const to = from + text.length;
    const tokens: ContentToken[] = [];
    let begin = 0;
    for (const piece of this.#pieces) {
      if (piece.end > from && begin < to) {
        tokens.push(...piece.tokens.map(this.#toContentToken));
        piece.tokens = [];
      }
      begin = piece.end;
    }
    this.#pieces = this.#pieces.filter((piece) => piece.end > to);
    this.#text = this.#text.slice(at + text.length);
    this.#start = to;
    return tokens;
  }
}
