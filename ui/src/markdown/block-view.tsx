/** One block of Markdown. Raw HTML is shown as text. */

import type { Token, Tokens } from "marked";
import { CodeBlock } from "./code-block.tsx";
import { Inline } from "./inline-view.tsx";
import { MathView } from "./math-view.tsx";
import type { MathToken } from "./syntax.ts";
import { TableView } from "./table-view.tsx";

/** Blocks nested deeper are shown as source text. */
const deepest = 12;

interface BlockProps {
  token: Token;
  /** False while the block is still being written. */
  isFinal: boolean;
  depth: number;
}

export function BlockView({ token, isFinal, depth }: BlockProps) {
  if (depth > deepest || "isPlain" in token) return <PlainText text={token.raw} />;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return (
        <p dir="auto">
          <Inline text={(token as Tokens.Paragraph).text} />
        </p>
      );
    case "heading":
      return <Heading token={token as Tokens.Heading} />;
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return <CodeBlock text={text} language={lang ?? ""} isFinal={isFinal} />;
    }
    case "blockquote":
      return (
        <blockquote dir="auto">
          <Blocks tokens={(token as Tokens.Blockquote).tokens} isFinal={isFinal} depth={depth} />
        </blockquote>
      );
    case "list":
      return <List token={token as Tokens.List} isFinal={isFinal} depth={depth} />;
    case "table":
      return <TableView token={token as Tokens.Table} />;
    case "math": {
      const { tex } = token as MathToken;
      return <MathView tex={tex} display />;
    }
    case "hr":
      return <hr />;
    case "text":
      return <Inline text={(token as Tokens.Text).text} />;
    default:
      return <PlainText text={token.raw} />;
  }
}

function Blocks({ tokens, isFinal, depth }: { tokens: Token[]; isFinal: boolean; depth: number }) {
  return tokens.map((token, index) => (
    <BlockView
      key={index}
      token={token}
      isFinal={isFinal || index < tokens.length - 1}
      depth={depth + 1}
    />
  ));
}

/** An answer's headings start at h3, below the page's own headings. */
function Heading({ token }: { token: Tokens.Heading }) {
  const Tag = `h${Math.min(6, token.depth + 2)}` as "h3" | "h4" | "h5" | "h6";
  return (
    <Tag dir="auto" className={`level-${token.depth}`}>
      <Inline text={token.text} />
    </Tag>
  );
}

function List({ token, isFinal, depth }: { token: Tokens.List; isFinal: boolean; depth: number }) {
  const items = token.items.map((item, index) => (
    <li key={index} className={item.task ? "task" : undefined}>
      {item.task && <TaskMark isDone={item.checked === true} />}
      <Blocks
        tokens={item.tokens.filter(({ type }) => type !== "checkbox")}
        isFinal={isFinal || index < token.items.length - 1}
        depth={depth}
      />
    </li>
  ));
  if (!token.ordered) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={Number(token.start) || 1}>
      {items}
    </ol>
  );
}

function TaskMark({ isDone }: { isDone: boolean }) {
  return (
    <span role="img" aria-label={isDone ? "done" : "to do"} className="task-mark">
      {isDone ? "☑" : "☐"}
    </span>
  );
}

function PlainText({ text }: { text: string }) {
  return (
    <p dir="auto" className="plain-text">
      {text}
    </p>
  );
}
