/** Markdown as React elements. Only blocks whose text changed render again. */

import { memo, useMemo, useRef } from "react";
import { BlockView } from "./block-view.tsx";
import { type Block, MarkdownBlocks } from "./blocks.ts";

/** With more blocks than this, blocks out of sight are not laid out. */
const manyBlocks = 30;

/** `ended`: the text is complete. */
export const Markdown = memo(function Markdown({ text, ended }: { text: string; ended: boolean }) {
  const parser = useRef<MarkdownBlocks>(null);
  parser.current ??= new MarkdownBlocks();
  const blocks = useMemo(() => parser.current!.update(text, ended), [text, ended]);
  return (
    <div className={blocks.length > manyBlocks ? "markdown many-blocks" : "markdown"}>
      {blocks.map((block) => (
        <MemoBlock key={block.key} block={block} />
      ))}
    </div>
  );
});

const MemoBlock = memo(
  ({ block }: { block: Block }) => (
    <BlockView token={block.token} isFinal={block.isFinal} depth={0} />
  ),
  ({ block: a }, { block: b }) =>
    a === b || (a.isFinal === b.isFinal && a.token.raw === b.token.raw),
);
