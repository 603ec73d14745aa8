/** `tool_choice` of a response: it names tools as the client knows them, and the model knows some by other names. */

import type { ToolDefinition } from "../../../chat/types.ts";
import { optional, required, type Type } from "../../body/field.ts";
import { oneTool, toolChoice, type ToolChoice, toolOfType } from "../../body/tools.ts";
import { mapped, notNull, object, text } from "../../body/values.ts";
import type { CallPresentation } from "../types.ts";

/** A function or custom tool, or one of an MCP server; without a name, all of the server. */
export type ToolReference =
  | { kind: "own"; name: string }
  | { kind: "mcp"; server: string; name: string | undefined };

const ownTool = (type: "function" | "custom"): Type<ToolReference> =>
  mapped(toolOfType(type), (name) => ({ kind: "own", name }));
const functionTool = ownTool("function");
const customTool = ownTool("custom");

const mcpTool: Type<ToolReference> = mapped(
  object(
    {
      server_label: required(notNull(text({ min: 1, remedy: "Send the label of an MCP server" }))),
      name: optional(text({ min: 1, remedy: "Send the name of one of its tools" })),
    },
    'Send {"server_label": …}',
    "passed over",
  ),
  ({ server_label: server, name }) => ({ kind: "mcp", server, name }),
);
const mcpChoice: Type<ToolChoice<ToolReference>> = mapped(mcpTool, (tool) => {
  const isOne = tool.name !== undefined;
  return { mode: "required", allowed: [tool], ...(isOne ? { named: true } : {}) };
});

export const responseToolChoice = optional(
  toolChoice(
    { function: oneTool(functionTool), custom: oneTool(customTool), mcp: mcpChoice },
    { function: functionTool, custom: customTool, mcp: mcpTool },
  ),
  "`auto`, `none`, `required`, a function or custom tool, one of an MCP server or all of it, `allowed_tools`, in which hosted tools are skipped with a warning; default `auto`",
);

interface OfferedTool {
  /** Under the name that the model knows it by. */
  definition: Pick<ToolDefinition, "name">;
  presentation: CallPresentation;
}

/**
 * What is chosen, by the model's names. What is not offered has a name that no tool has: `checkToolChoice` refuses it.
 * @param servers of which tools are offered, or would be if they had any
 */
export function chosenNames(
  allowed: readonly ToolReference[],
  offered: readonly OfferedTool[],
  servers: readonly string[],
): string[] {
  const names = namesByReference(offered, servers);
  return [...new Set(allowed.flatMap((tool) => names.get(keyOf(tool)) ?? [titleOf(tool)]))];
}

function namesByReference(
  offered: readonly OfferedTool[],
  servers: readonly string[],
): Map<string, string[]> {
  const names = new Map<string, string[]>(
    servers.map((server) => [keyOf({ kind: "mcp", server, name: undefined }), []]),
  );
  const add = (tool: ToolReference, name: string): void => {
    const key = keyOf(tool);
    const known = names.get(key);
    if (known === undefined) names.set(key, [name]);
    else known.push(name);
  };
  for (const { definition, presentation } of offered) {
    const { name } = presentation;
    if (presentation.kind === "mcp") {
      const { server } = presentation;
      add({ kind: "mcp", server, name: undefined }, definition.name);
      add({ kind: "mcp", server, name }, definition.name);
    } else if (name !== definition.name) add({ kind: "own", name }, definition.name);
  }
  // The model's own names come first: one of a namespace may have another's.
  for (const { definition } of offered)
    names.set(keyOf({ kind: "own", name: definition.name }), [definition.name]);
  return names;
}

function keyOf(tool: ToolReference): string {
  return tool.kind === "own" ? `own ${tool.name}` : JSON.stringify([tool.server, tool.name]);
}

function titleOf(tool: ToolReference): string {
  return tool.kind === "own" ? tool.name : `${tool.server}/${tool.name ?? "*"}`;
}
