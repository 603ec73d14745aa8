/** Who runs the tools of a request: nobody, the client, or this server. */

import type { ToolDefinition } from "../../chat/types.ts";
import type { ToolLoopOptions } from "../../tools/tool-loop.ts";
import type { Tool, ToolProvider } from "../../tools/types.ts";
import type { ToolChoice } from "../body/tools.ts";

export type ToolMode =
  | { kind: "none" }
  | { kind: "external"; tools: ToolDefinition[] }
  | {
      kind: "internal";
      tools: Tool[];
      /** Where a request mixes these tools with its own. */
      limits?: Pick<ToolLoopOptions, "offered" | "handsOver" | "maxCalls"> | undefined;
    };

/**
 * | request has `tools` | MCP configured | mode     |
 * |---------------------|----------------|----------|
 * | no                  | no             | none     |
 * | yes                 | either         | external |
 * | no                  | yes            | internal |
 *
 * An empty list counts as given, so MCP tools stay out of the prompt; since there is then nothing to
 * call, markers are plain text. The same holds for `tool_choice: "none"`, and while no MCP server
 * offers a tool.
 */
export function resolveToolMode(
  request: { tools: ToolDefinition[] | null; toolChoice: Pick<ToolChoice, "mode"> },
  provider: Pick<ToolProvider, "tools"> | null,
): ToolMode {
  if (request.toolChoice.mode === "none") return { kind: "none" };
  if (request.tools !== null) {
    return request.tools.length === 0
      ? { kind: "none" }
      : { kind: "external", tools: request.tools };
  }
  const tools = provider?.tools() ?? [];
  return tools.length === 0 ? { kind: "none" } : { kind: "internal", tools };
}

/** What can be called. */
export function definitionsOf(mode: ToolMode): readonly ToolDefinition[] {
  if (mode.kind === "external") return mode.tools;
  if (mode.kind === "none") return [];
  return mode.limits?.offered ?? mode.tools.map((tool) => tool.definition);
}
