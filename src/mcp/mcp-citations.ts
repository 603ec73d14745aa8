/** Where a result comes from: resources that it holds or points to, files that it was read from. */

import type { Block } from "./mcp-block.ts";
import { plainText } from "./mcp-text.ts";

const maxCitations = 50;
const maxLength = 2048;
/** Nothing that a page would run instead of open. */
const unsafeScheme = /^\s*(?:javascript|vbscript|data|blob):/i;
const readerName = /(?:^|[_.-])(?:read|get|fetch|open|load|view|cat)(?:[_.-]|$)/i;
const pathKeys = ["path", "paths", "file", "files", "file_path", "filename", "uri", "url"];

/** In the order of the blocks, each once. */
export function citationsOf(blocks: readonly Block[], readPaths: readonly string[]): string[] {
  const uris = blocks.flatMap((block) => {
    if (block.type === "resource_link") return [block["uri"]];
    if (block.type !== "resource") return [];
    return [(block["resource"] as { uri?: unknown } | undefined)?.uri];
  });
  const all = [...readPaths, ...uris.filter((uri) => typeof uri === "string")]
    .filter((source) => source !== "" && !unsafeScheme.test(source))
    .map((source) => plainText(source, maxLength));
  return [...new Set(all)].slice(0, maxCitations);
}

/** What a tool that reads was asked to read: the strings that its arguments name as paths. */
export function readPathsOf(
  { name, readOnly }: { name: string; readOnly: boolean },
  args: Record<string, unknown>,
): string[] {
  if (!readOnly || !readerName.test(name)) return [];
  return pathKeys
    .flatMap((key) => [args[key] ?? []].flat())
    .filter((path) => typeof path === "string");
}
