/** A `tools/call` result as text for the model. */

import type { ToolResult } from "../tools/types.ts";

interface Block {
  type: string;
  [key: string]: unknown;
}

/**
 * Text blocks joined by newlines; structured content as JSON where no block is text. Media and
 * binary resources become a one-line note: the model cannot see them and must not guess.
 */
export function mcpResultToText(result: { [key: string]: unknown }): ToolResult {
  const blocks = Array.isArray(result["content"]) ? (result["content"] as Block[]) : [];
  const structured = result["structuredContent"];
  const hasText = blocks.some((block) => block.type === "text");
  const parts = blocks.map(blockToText);
  if (!hasText && structured !== undefined) parts.unshift(JSON.stringify(structured));
  return { content: parts.join("\n"), isError: result["isError"] === true };
}

function blockToText(block: Block): string {
  switch (block.type) {
    case "text":
      return String(block["text"] ?? "");
    case "image":
    case "audio":
      return `[${block.type} not shown: ${String(block["mimeType"])}, ${base64Bytes(block["data"])} bytes]`;
    case "resource_link":
      return `[resource: ${String(block["uri"])}${block["name"] === undefined ? "" : ` (${String(block["name"])})`}]`;
    case "resource":
      return resourceToText((block["resource"] ?? {}) as Record<string, unknown>);
    default:
      return `[${block.type} not shown]`;
  }
}

function resourceToText(resource: Record<string, unknown>): string {
  const uri = String(resource["uri"]);
  if (typeof resource["text"] === "string") return `[resource: ${uri}]\n${resource["text"]}`;
  return `[resource not shown: ${uri}, ${base64Bytes(resource["blob"])} bytes]`;
}

function base64Bytes(data: unknown): number {
  return typeof data === "string" ? Buffer.byteLength(data, "base64") : 0;
}
