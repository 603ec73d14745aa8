import type { McpListToolsItem, UnnumberedEvent } from "../types.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

const inProgress = "response.mcp_list_tools.in_progress";
const completed = "response.mcp_list_tools.completed";
const failed = "response.mcp_list_tools.failed";

export const mcpListToolsGrammar: ItemGrammar = {
  item: "mcp_list_tools",
  follows: {
    [added]: [inProgress],
    [inProgress]: [completed, failed],
    [completed]: [done],
    [failed]: [done],
  },
};

/** The list is known before the response begins, so its events come at once. */
export function mcpListToolsEvents(item: McpListToolsItem, outputIndex: number): UnnumberedEvent[] {
  const common = { output_index: outputIndex, item_id: item.id };
  return [
    { type: added, output_index: outputIndex, item: { ...item, tools: [] } },
    { type: inProgress, ...common },
    { type: item.error === null ? completed : failed, ...common },
    { type: done, output_index: outputIndex, item },
  ];
}
