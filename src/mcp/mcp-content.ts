/** A `tools/call` result as text for the model. */

import type { ToolResult } from "../tools/types.ts";
import { cutText, plainText, visibleControls } from "./mcp-text.ts";

const maxUriLength = 2048;
const maxNameLength = 200;

/**
 * Text blocks joined by newlines; structured content as JSON where there is no block. Media and
 * binary resources become a one-line note: the model cannot see them and must not guess.
 * @param maxBytes of the text; more is cut, and the text says so
 */
export function mcpResultToText(
  result: { [key: string]: unknown },
  {
    maxBytes = Infinity,
    readPaths = [],
  }: { maxBytes?: number; readPaths?: readonly string[] } = {},
): ToolResult {
  const blocks = Array.isArray(result["content"]) ? result["content"].filter(isBlock) : [];
  const structured = result["structuredContent"];
  const parts = blocks.map(blockToText);
  if (parts.length === 0 && structured !== undefined) parts.push(JSON.stringify(structured));
  const isError = result["isError"] === true;
  const content = cutToBytes(visibleControls(parts.join("\n")), maxBytes);
  const citations = isError ? [] : citationsOf(blocks, readPaths);
  return citations.length === 0 ? { content, isError } : { content, isError, citations };
}

function isBlock(value: unknown): value is Block {
  return typeof (value as Block | null)?.type === "string";
}

function blockToText(block: Block): string {
  switch (block.type) {
    case "text":
      return typeof block["text"] === "string" ? block["text"] : "";
    case "image":
    case "audio":
      return `[${block.type} not shown: ${short(block["mimeType"])}, ${base64Bytes(block["data"])} bytes]`;
    case "resource_link":
      return `[resource: ${uriOf(block)}${block["name"] === undefined ? "" : ` (${short(block["name"])})`}]`;
    case "resource":
      return resourceToText((block["resource"] ?? {}) as Record<string, unknown>);
    default:
      return `[${short(block.type)} not shown]`;
  }
}

function resourceToText(resource: Record<string, unknown>): string {
  const uri = uriOf(resource);
  if (typeof resource["text"] === "string") return `[resource: ${uri}]\n${resource["text"]}`;
  return `[resource not shown: ${uri}, ${base64Bytes(resource["blob"])} bytes]`;
}

function uriOf({ uri }: Record<string, unknown>): string {
  return plainText(String(uri), maxUriLength);
}

function short(value: unknown): string {
  return plainText(String(value), maxNameLength);
}

function base64Bytes(data: unknown): number {
  return typeof data === "string" ? Buffer.byteLength(data, "base64") : 0;
}

function cutToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  const kept = Buffer.from(text)
    .subarray(0, maxBytes)
    .toString("utf8")
    .replace(/\ufffd+$/, "");
  return `${cutText(kept, kept.length)}\n[… the result has ${bytes} bytes: only the first ${maxBytes} are shown …]`;
}

export interface Block {
  type: string;
  [key: string]: unknown;
}

const maxCitations = 50;
const maxLength = 2048;
/** Nothing that a page would run instead of open. */
const unsafeScheme = /^\s*(?:javascript|vbscript|data|blob):/i;
const readerName = /(?:^|[_.-])(?:read|get|fetch|open|load|view|cat)(?:[_.-]|$)/i;
const pathKeys = ["path", "paths", "file", "files", "file_path", "filename", "uri", "url"];

/** In the order of the blocks, each once. */
function citationsOf(blocks: readonly Block[], readPaths: readonly string[]): string[] {
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
