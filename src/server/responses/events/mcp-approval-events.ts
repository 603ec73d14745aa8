import type { McpApprovalRequestItem, UnnumberedEvent } from "../types.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

export const mcpApprovalGrammar: ItemGrammar = {
  item: "mcp_approval_request",
  follows: { [added]: [done] },
};

/** A request for the user's consent comes whole. */
export function mcpApprovalEvents(
  item: McpApprovalRequestItem,
  outputIndex: number,
): UnnumberedEvent[] {
  return [added, done].map((type) => ({ type, output_index: outputIndex, item }));
}
