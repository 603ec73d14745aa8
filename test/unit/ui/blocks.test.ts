import fc from "fast-check";
import { Lexer } from "marked";
import { expect, test } from "vitest";
import { MarkdownBlocks } from "../../../ui/src/markdown/blocks.ts";
import { markdownOptions } from "../../../ui/src/markdown/syntax.ts";

const page = `# Title

A paragraph
***bold at a line's start*** and more.

- one
- two

  still two
- three

| a | b |
|---|---|
| 1 | 2 |

\`\`\`js
const a = 1;

const b = 2;
\`\`\`

$$
x = 1
$$

Setext
---

> quote
> more

[link]: https://example.org
A [link] at the end.
`;

const typesAndText = (blocks: ReturnType<MarkdownBlocks["update"]>) =>
  blocks.map(({ token }) => `${token.type}: ${token.raw.trimEnd()}`);

function whole(text: string): string[] {
  const lexer = new Lexer(markdownOptions());
  return lexer
    .blockTokens(text, [])
    .filter(({ type }) => type !== "space")
    .map(({ type, raw }) => `${type}: ${raw.trimEnd()}`);
}

test.each([1, 2, 3, 7, 40])("cut into pieces of %i the blocks are those of the whole", (size) => {
  const blocks = new MarkdownBlocks();
  for (let end = size; end < page.length; end += size) blocks.update(page.slice(0, end), false);
  expect(typesAndText(blocks.update(page, true))).toEqual(whole(page));
});

test("any text, cut anywhere, has the blocks of the whole", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "",
      "- a",
      "  b",
      "1. c",
      "***",
      "---",
      "***d***",
      "# e",
      "#f",
      "```",
      "> g",
      "| h | i |",
      "|---|---|",
      "    j",
      "$$",
      "k",
      "<div>",
      "[l]: /m",
      "===",
      "* * *",
      "\\[",
      "\\]",
      "- [x] n",
    ),
    fc.string({ maxLength: 8 }),
  );
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 14 }),
      fc.integer({ min: 1, max: 9 }),
      (lines, size) => {
        const text = lines.join("\n").replaceAll("\r", "");
        const blocks = new MarkdownBlocks();
        for (let end = size; end < text.length; end += size)
          blocks.update(text.slice(0, end), false);
        expect(typesAndText(blocks.update(text, true))).toEqual(whole(text));
      },
    ),
    { seed: 20261122, numRuns: 2000 },
  );
});

test("what is written is parsed about once, and finished blocks keep their identity", () => {
  const blocks = new MarkdownBlocks();
  const text = page.repeat(20);
  const first = blocks.update(text.slice(0, 200), false)[0];
  for (let end = 200; end <= text.length; end += 10) blocks.update(text.slice(0, end), false);
  const last = blocks.update(text, true);
  expect(last[0]).toBe(first);
  // Each piece of ten characters has the open block parsed again, and nothing before it.
  expect(blocks.parsed / text.length).toBeLessThan(20);
});

test.each(["-", "*"])("a line of many %s hides nothing of the rest", (mark) => {
  const rule = mark.repeat(60);
  const text = `# Title\n\n\`\`\`sql\n${rule}\nselect 1;\n\`\`\`\n\n${rule}\n\nThe **end**.\n`;
  expect(typesAndText(new MarkdownBlocks().update(text, true))).toEqual(whole(text));
});

test.each(["> ", ">", "- ", "1. ", "> - "])("%j deeper than anybody nests is text", (mark) => {
  const text = `${mark.repeat(3000)}deep`;
  expect(typesAndText(new MarkdownBlocks().update(text, true))).toEqual([`paragraph: ${text}`]);
});

test("a text that is another one begins anew", () => {
  const blocks = new MarkdownBlocks();
  blocks.update("One\n\nTwo\n\nThree", false);
  expect(typesAndText(blocks.update("Other", true))).toEqual(["paragraph: Other"]);
});
