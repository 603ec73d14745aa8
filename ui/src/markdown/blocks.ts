/**
 * Parses Markdown that grows. Blocks that can no longer change are kept, and only the text after
 * them is parsed again. Pure; it never makes HTML.
 */

import { Lexer, type Token, type TokensList } from "marked";
import { markdownOptions } from "./syntax.ts";

/** A block keeps its identity while its text is the same. */
export interface Block {
  key: number;
  token: Token;
  /** Later text cannot change it. */
  isFinal: boolean;
}

type Links = TokensList["links"];

/** Longer text is shown as source, because growing text is parsed repeatedly. In UTF-16 units. */
const longestOpenBlock = 200_000;
const longestText = 5_000_000;
/**
 * Nobody nests deeper, and the parser's work grows with the square of the depth. Without a space behind them, marks of
 * lists are a line.
 */
const deepNesting = /^[ \t]*(?:>[ \t]*|(?:[-+*]|\d{1,9}[.)])[ \t]+){40}/m;

export class MarkdownBlocks {
  #final: Block[] = [];
  #links: Links = {};
  /** The text of the final blocks. */
  #done = "";
  /** Whole lines up to here were examined. */
  #linesEnd = 0;
  #seen: { text: string; ended: boolean } | null = null;
  #blocks: readonly Block[] = [];
  /** Number of characters parsed so far, for tests. */
  parsed = 0;

  /** The blocks of `text`; cheap when `text` continues the previous one. `ended`: the text is complete. */
  update(source: string, ended: boolean): readonly Block[] {
    const text = source.includes("\r") ? source.replaceAll(/\r\n?/g, "\n") : source;
    if (text === this.#seen?.text && ended === this.#seen.ended) return this.#blocks;
    const continues = text.startsWith(this.#done) && this.#seen?.ended !== true;
    if (!continues) this.#reset();
    this.#seen = { text, ended };
    // An unfinished line may still become anything.
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

  /** Keeps all blocks of whole lines except the last, which may continue in the next line. */
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
      // The lexer may normalise its input. A block that is not found in the text is not cut off.
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
 * Where math begins that later lines may close. Math ends
 * at a blank line.
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

/** Puts all text into the last token, so no block becomes final before the end. */
function keepRaw(tokens: Token[], text: string): Token[] {
  return tokens.map((token, index) => ({ ...token, raw: index === 0 ? text : "" }));
}
