/** A block of code. When it is complete, the highlighter is loaded and colours it. */

import type { ElementContent } from "hast";
import { memo, type ReactNode, useEffect, useState } from "react";
import { ClippedText } from "../shell/clipped-text.tsx";
import { CopyButton } from "../shell/copy-button.tsx";

/** Longer code is not highlighted. In UTF-16 units. */
const longestHighlighted = 30_000;

interface CodeProps {
  text: string;
  /** The language after the fence. */
  language: string;
  isFinal: boolean;
}

export const CodeBlock = memo(function CodeBlock({ text, language, isFinal }: CodeProps) {
  const name = language.split(/\s/, 1)[0]?.toLowerCase() ?? "";
  const tree = useHighlighted(text, name, isFinal);
  return (
    <figure className="code-block">
      <figcaption>
        <span>{name === "" ? "text" : name.slice(0, 24)}</span>
        <CopyButton text={text} label="Copy code" />
      </figcaption>
      <pre tabIndex={0} aria-label={name === "" ? "Code" : `Code, ${name.slice(0, 24)}`}>
        {tree === null ? (
          <ClippedText text={text} lines={400} length={40_000} />
        ) : (
          <code>{nodes(tree)}</code>
        )}
      </pre>
    </figure>
  );
});

function useHighlighted(text: string, language: string, isFinal: boolean): ElementContent[] | null {
  const [result, setResult] = useState<{ text: string; tree: ElementContent[] } | null>(null);
  const isWanted = isFinal && language !== "" && text.length <= longestHighlighted;
  useEffect(() => {
    if (!isWanted) return undefined;
    let isGone = false;
    void import("./highlight.ts").then(({ highlight }) => {
      const tree = highlight(text, language);
      if (!isGone && tree !== null) setResult({ text, tree });
    });
    return () => {
      isGone = true;
    };
  }, [isWanted, text, language]);
  return result?.text === text ? result.tree : null;
}

function nodes(children: readonly ElementContent[]): ReactNode[] {
  return children.map((node, index) => {
    if (node.type === "text") return node.value;
    if (node.type !== "element") return null;
    const { className } = node.properties;
    return (
      <span key={index} className={Array.isArray(className) ? className.join(" ") : undefined}>
        {nodes(node.children)}
      </span>
    );
  });
}
