/** Text inside a block. Links go to http, https and mailto only; pictures are links and never fetched. */

import type { Token, Tokens } from "marked";
import { memo, type ReactNode, useMemo } from "react";
import { decodeEntities } from "./entities.ts";
import { MathView } from "./math-view.tsx";
import { safeLink, showControls } from "./safe-text.ts";
import { inlineTokens, type MathToken } from "./syntax.ts";

const deepest = 12;

export const Inline = memo(function Inline({ text }: { text: string }) {
  const tokens = useMemo(() => inlineTokens(text), [text]);
  return <InlineTokens tokens={tokens} depth={0} />;
});

function InlineTokens({ tokens, depth }: { tokens: readonly Token[]; depth: number }) {
  return tokens.map((token, index) => <InlineView key={index} token={token} depth={depth} />);
}

function InlineView({ token, depth }: { token: Token; depth: number }): ReactNode {
  const inner = "tokens" in token ? token.tokens : undefined;
  const content =
    inner === undefined || depth >= deepest ? (
      decodeEntities(String("text" in token ? token.text : token.raw))
    ) : (
      <InlineTokens tokens={inner} depth={depth + 1} />
    );
  switch (token.type) {
    case "text":
    case "escape":
      return content;
    case "strong":
      return <strong>{content}</strong>;
    case "em":
      return <em>{content}</em>;
    case "del":
      return <del>{content}</del>;
    case "codespan":
      return <code dir="auto">{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link address={(token as Tokens.Link).href}>{content}</Link>;
    case "image": {
      const { href, text } = token as Tokens.Image;
      return <Link address={href}>Image: {text === "" ? href : text}</Link>;
    }
    case "math": {
      const { tex, display } = token as MathToken;
      return <MathView tex={tex} display={display} />;
    }
    default:
      return token.raw;
  }
}

function Link({ address, children }: { address: string; children: ReactNode }) {
  const href = safeLink(decodeEntities(address));
  if (href === null) return <bdi>{children}</bdi>;
  return (
    <a href={href} title={showControls(href)} target="_blank" rel="noreferrer noopener nofollow">
      <bdi>{children}</bdi>
    </a>
  );
}
