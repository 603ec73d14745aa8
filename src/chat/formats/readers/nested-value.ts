/** Values written as elements: `<when><date>x</date></when>`, `<tags><item>a</item></tags>`, each tag behind a mark. */

import { schemaOfProperty, writeValue } from "./typed-value.ts";

/** @returns JSON; undefined where the text has no elements, or is none of them */
export function nestedJson(text: string, mark: string, schema: unknown): string | undefined {
  const children = elements(text.trim(), mark);
  if (children === undefined || children.length === 0) return undefined;
  const isList = children.every(([tag]) => tag === "item");
  const written = children.map(([tag, inner]) => {
    const own = schemaOfProperty(schema, isList ? null : tag);
    const value = nestedJson(inner, mark, own) ?? writeValue(inner, own);
    return isList ? value : `${JSON.stringify(tag)}:${value}`;
  });
  return isList ? `[${written.join(",")}]` : `{${written.join(",")}}`;
}

/** Undefined: something stands outside of elements. */
function elements(text: string, mark: string): [tag: string, inner: string][] | undefined {
  const found: [string, string][] = [];
  let rest = text;
  while (rest !== "") {
    const tag = rest.startsWith(`${mark}<`)
      ? /^[\w.$-]+(?=>)/u.exec(rest.slice(mark.length + 1))
      : null;
    if (tag === null) return undefined;
    const [open, close] = [`${mark}<${tag[0]}>`, `${mark}</${tag[0]}>`];
    const end = closingAt(rest, open, close);
    if (end < 0) return undefined;
    found.push([tag[0], rest.slice(open.length, end)]);
    rest = rest.slice(end + close.length).trimStart();
  }
  return found;
}

/** Where the element closes that the text begins with, or -1. */
function closingAt(text: string, open: string, close: string): number {
  let depth = 1;
  let at = open.length;
  for (;;) {
    const end = text.indexOf(close, at);
    if (end < 0) return -1;
    const inner = text.indexOf(open, at);
    const isDeeper = inner >= 0 && inner < end;
    depth += isDeeper ? 1 : -1;
    if (depth === 0) return end;
    at = isDeeper ? inner + open.length : end + close.length;
  }
}
