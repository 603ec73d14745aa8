/** The Markdown dialect of models: GitHub's, with math between `$`, `$$`, `\(` or `\[`. */

import { Lexer, Marked, type MarkedOptions, type Token, type Tokens } from "marked";

export interface MathToken extends Tokens.Generic {
  type: "math";
  tex: string;
  display: boolean;
}

/** Math between a pair of equal delimiters, without a blank line inside. */
const blockMath =
  /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[^$])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n|$)/;
const inlineMath =
  /^(?:\$\$([^$\n]+?)\$\$|\\\(([^\n]+?)\\\)|\\\[([^\n]+?)\\\]|\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\$])\$(?!\d))/;

function mathToken(match: RegExpExecArray | null, display: boolean): MathToken | undefined {
  if (match === null) return undefined;
  const tex = match.slice(1).find((group) => group !== undefined);
  if (tex === undefined || tex.trim() === "") return undefined;
  return { type: "math", raw: match[0], tex: tex.trim(), display };
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  extensions: [
    {
      name: "math",
      level: "block",
      start: (text) => text.match(/(?:^|\n) {0,3}(?:\$\$|\\\[)/)?.index,
      tokenizer: (text) => mathToken(blockMath.exec(text), true),
    },
    {
      name: "math",
      level: "inline",
      start: (text) => text.match(/\$|\\\(|\\\[/)?.index,
      tokenizer: (text) =>
        mathToken(inlineMath.exec(text), text.startsWith("$$") || text.startsWith("\\[")),
    },
  ],
});

export function markdownOptions(): MarkedOptions {
  return { ...marked.defaults };
}

/** Longer runs of text are not parsed, because emphasis takes quadratic time. In UTF-16 units. */
const longestInline = 20_000;

export function inlineTokens(text: string): Token[] {
  if (text.length > longestInline) return [{ type: "text", raw: text, text }];
  try {
    return new Lexer(markdownOptions()).inlineTokens(text);
  } catch {
    return [{ type: "text", raw: text, text }];
  }
}
