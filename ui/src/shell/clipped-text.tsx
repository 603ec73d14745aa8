/** A text that may be huge: shows its beginning, and the rest on demand. */

import { memo, useState } from "react";
import { clip, formatSize } from "../markdown/safe-text.ts";

/** The text is laid out in parts of this size, and only visible parts. In UTF-16 units. */
const partLength = 20_000;

interface ClippedTextProps {
  text: string;
  lines: number;
  length: number;
}

export const ClippedText = memo(function ClippedText({ text, lines, length }: ClippedTextProps) {
  const [showsAll, setShowsAll] = useState(false);
  const clipped = clip(text, length, lines);
  if (!clipped.isClipped) return <code dir="auto">{text}</code>;
  return (
    <>
      {showsAll ? (
        partsOf(text).map((part, index) => (
          <code key={index} dir="auto" className="text-part">
            {part}
          </code>
        ))
      ) : (
        <code dir="auto">{clipped.text}</code>
      )}
      <button
        type="button"
        className="quiet show-all"
        aria-expanded={showsAll}
        onClick={() => setShowsAll(!showsAll)}
      >
        {showsAll ? "Show less" : `Show all (${formatSize(text.length)})`}
      </button>
    </>
  );
});

/** Cuts at line ends where possible. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length;) {
    const line = text.indexOf("\n", start + partLength);
    const limit = start + 2 * partLength;
    let end = line === -1 || line > limit ? Math.min(limit, text.length) : line + 1;
    if (/[\uD800-\uDBFF]/.test(text[end - 1] ?? "") && end < text.length) end -= 1;
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}
