/**
 * Markdown that grows: blocks that can no longer change are kept as they are, and only what follows
 * them is parsed again. Pure; no HTML is ever made.
 */

import { Lexer, type Token, type TokensList } from "marked";
import { markdownOptions } from "./syntax.ts";

/** A block has one identity for as long as its text is the same. */
export interface Block {
  key: number;
  token: Token;
  /** Nothing that follows can change it. */
  isFinal: boolean;
}

type Links = TokensList["links"];

/** Longer text, in UTF-16 units, is shown as it is: while it grows it is parsed again and again. */
const longestOpenBlock = 200_000;
const longestText = 5_000_000;
/** Deeper nesting than anybody writes; the parser's work grows with its square. */
const deepNesting = /^[ \t]*(?:(?:>|[-+*]|\d{1,9}[.)])[ \t]*){40}/m;

export class MarkdownBlocks {
  #final: Block[] = [];
  #links: Links = {};
  /** What the final blocks were made of. */
  #done = "";
  /** How far whole lines were looked at. */
  #linesEnd = 0;
  #seen: { text: string; ended: boolean } | null = null;
  #blocks: readonly Block[] = [];
  /** Characters that were parsed so far, for tests. */
  parsed = 0;

  /** The blocks of `text`; cheap when `text` continues the one before. `ended`: nothing follows. */
  update(source: string, ended: boolean): readonly Block[] {
    const text = source.includes("\r") ? source.replaceAll(/\r\n?/g, "\n") : source;
    if (text === this.#seen?.text && ended === this.#seen.ended) return this.#blocks;
    const continues = text.startsWith(this.#done) && this.#seen?.ended !== true;
    if (!continues) this.#reset();
    this.#seen = { text, ended };
    // A line that is still being written may become anything.
    const end = ended ? text.length : text.lastIndexOf("\n") + 1;
    if (end > this.#linesEnd) this.#settle(text.slice(0, end), ended);
    this.#linesEnd = end;
    const rest = text.slice(this.#done.length);
    const open =
      rest === "" ? [] : this.#parse(rest, longestOpenBlock).filter(({ type }) => type !== "space");
    const first = this.#final.length;
    const unfinished = open.map((token, index) => ({ key: first + index, token, isFinal: ended }));
    this.#blocks = [...this.#final, ...unfinished];
    return this.#blocks;
  }

  /** Keeps all blocks of whole lines but the last one, which may go on in the next line. */
  #settle(lines: string, ended: boolean): void {
    const rest = lines.slice(this.#done.length);
    if (!ended && rest.length > longestOpenBlock) return;
    const tokens = this.#parse(rest, ended ? longestText : longestOpenBlock);
    const last = ended ? tokens.length : tokens.findLastIndex(({ type }) => type !== "space");
    const limit = this.#done.length + (ended ? rest.length : openMath(rest));
    for (const token of tokens.slice(0, Math.max(last, 0))) {
      if (this.#done.length + token.raw.length > limit) return;
      this.#done += token.raw;
      if (token.type === "space") continue;
      this.#final.push({ key: this.#final.length, token, isFinal: true });
    }
  }

  #parse(text: string, longest: number): Token[] {
    this.parsed += text.length;
    const plain: Token = { type: "paragraph", raw: text, text, tokens: [], isPlain: true };
    if (text.length > longest || deepNesting.test(text)) return [plain];
    try {
      const lexer = new Lexer(markdownOptions());
      Object.assign(lexer.tokens.links, this.#links);
      const tokens = lexer.blockTokens(text, []);
      // Definitions name links for all blocks after them.
      this.#links = { ...lexer.tokens.links };
      // The lexer may normalise what it reads; a block that cannot be found again is not cut off.
      return tokens.map(({ raw }) => raw).join("") === text ? tokens : keepRaw(tokens, text);
    } catch {
      return [plain];
    }
  }

  #reset(): void {
    this.#final = [];
    this.#links = {};
    this.#done = "";
    this.#linesEnd = 0;
    this.#blocks = [];
  }
}

/**
 * Where math begins that the next lines may close, whatever they look like until then. It does not go on
 * behind a blank line.
 */
function openMath(lines: string): number {
  let paragraph = lines.length;
  while (paragraph > 0) {
    const line = lines.lastIndexOf("\n", paragraph - 2) + 1;
    if (lines.slice(line, paragraph).trim() === "") break;
    paragraph = line;
  }
  const opener = /^ {0,3}(?:\$\$|\\\[)/m.exec(lines.slice(paragraph));
  return opener === null ? lines.length : paragraph + opener.index;
}

/** All text belongs to the last token, so that none of the blocks is settled before the end. */
function keepRaw(tokens: Token[], text: string): Token[] {
  return tokens.map((token, index) => ({ ...token, raw: index === 0 ? text : "" }));
}
