import { expect, test } from "vitest";
import { decodeEntities } from "../../../ui/src/markdown/entities.ts";
import { clip, formatSize, safeLink, showControls } from "../../../ui/src/markdown/safe-text.ts";
import { inlineTokens } from "../../../ui/src/markdown/syntax.ts";

test.each([
  ["https://example.org/a?b#c", "https://example.org/a?b#c"],
  ["HTTP://EXAMPLE.org", "http://example.org/"],
  ["mailto:a@example.org", "mailto:a@example.org"],
  ["javascript:alert(1)", null],
  ["JaVaScRiPt:alert(1)", null],
  [" \u0001javascript:alert(1)", null],
  ["java\nscript:alert(1)", null],
  ["data:text/html,x", null],
  ["vbscript:x", null],
  ["file:///etc/passwd", null],
  ["blob:https://example.org/x", null],
  ["/v1/models", null],
  ["//evil.example", null],
  ["", null],
])("safeLink(%j) is %j", (address, expected) => {
  expect(safeLink(address)).toBe(expected);
});

test("characters that hide or turn others are spelled", () => {
  expect(showControls("a\u202Eb\u200Dc\u0007d\u2066e")).toBe(
    "a‹U+202E›b‹U+200D›c‹U+0007›d‹U+2066›e",
  );
  expect(showControls("tab\tnew\nline é 漢")).toBe("tab\tnew\nline é 漢");
});

test("a clip ends after its characters or lines, never within a character", () => {
  expect(clip("abc", 10, 10)).toEqual({ text: "abc", isClipped: false });
  expect(clip("a\nb\nc", 10, 2)).toEqual({ text: "a\nb", isClipped: true });
  expect(clip("a🎵b", 2, 9)).toEqual({ text: "a", isClipped: true });
});

test("sizes", () => {
  expect([5, 2400, 24_000, 1_040_000].map(formatSize)).toEqual([
    "5 characters",
    "2.4 k characters",
    "24 k characters",
    "1.0 M characters",
  ]);
});

test("entities become characters once", () => {
  expect(decodeEntities("&lt;b&gt; &amp;lt; &#65;&#x42; &nope; &#0;&#xD800;&#1114112;")).toBe(
    "<b> &lt; AB &nope; \uFFFD\uFFFD\uFFFD",
  );
});

test.each([
  ["costs $5 and $6", []],
  ["$x$ and $y_1$", ["x", "y_1"]],
  ["\\(a\\) \\[b\\] $$c$$", ["a", "b", "c"]],
  ["`$x$`", []],
  ["$ x $", []],
  ["\\$x$", []],
])("math in %j: %j", (text, expected) => {
  const found = inlineTokens(text).flatMap((token) => ("tex" in token ? [token["tex"]] : []));
  expect(found).toEqual(expected);
});

test("emoji stay whole, tags that hide text do not", () => {
  expect(showControls("👩‍💻 ❤️‍🔥")).toBe("👩‍💻 ❤️‍🔥");
  expect(showControls("a\u{E0041}b")).toBe("a‹U+E0041›b");
});
