/** A `tools/call` result as text for the model. */

import type { ToolResult } from "../tools/types.ts";
import { cutText, plainText, visibleControls } from "./text.ts";

const maxUriLength = 2048;
const maxNameLength = 200;

/**
 * Text blocks joined by newlines; structured content as JSON where no block has a text. Media, binary resources and
 * what is for the user alone become a one-line note: the model cannot see them and must not guess.
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
  // If no block is for the model, all are shown: the server did not mean to hide its whole result.
  const isForModel = !blocks.every(isForUser);
  const shown = blocks.filter((block) => !isForModel || !isForUser(block));
  let parts = blocks.map((block) =>
    shown.includes(block) ? blockToText(block) : `[${nameOf(block)} for the user, not shown]`,
  );
  if (structured !== undefined && !shown.some(hasText)) {
    const json = JSON.stringify(structured);
    // Some servers repeat their blocks there, media and all.
    const isRepeated = blocks.some((block) => dataOf(block) !== "" && json.includes(dataOf(block)));
    if (!isRepeated) parts = [...parts.filter((part) => part.trim() !== ""), json];
  }
  const isError = result["isError"] === true;
  const content = cutToBytes(visibleControls(parts.join("\n")), maxBytes);
  const citations = isError ? [] : citationsOf(blocks, readPaths);
  return citations.length === 0 ? { content, isError } : { content, isError, citations };
}

function isBlock(value: unknown): value is Block {
  return typeof (value as Block | null)?.type === "string";
}

function isForUser({ annotations }: Block): boolean {
  const audience = (annotations as { audience?: unknown } | null | undefined)?.audience;
  return Array.isArray(audience) && audience.length > 0 && !audience.includes("assistant");
}

function nameOf(block: Block): string {
  if (block.type === "resource_link") return `resource ${uriOf(block)}`;
  return block.type === "resource" ? `resource ${uriOf(resourceOf(block))}` : short(block.type);
}

function hasText(block: Block): boolean {
  const { text } = block.type === "resource" ? resourceOf(block) : block;
  return typeof text === "string" && text.trim() !== "";
}

/** Base64; "" for none. */
function dataOf(block: Block): string {
  const data = block.type === "resource" ? resourceOf(block)["blob"] : block["data"];
  return typeof data === "string" ? data : "";
}

function resourceOf(block: Block): Record<string, unknown> {
  return (block["resource"] ?? {}) as Record<string, unknown>;
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
      return resourceToText(resourceOf(block));
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
