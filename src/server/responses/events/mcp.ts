/** Items of MCP servers: calls that this server runs, and lists of tools. */

import type { McpCallItem, McpListToolsItem, UnnumberedEvent } from "../types.ts";
import { added, done, ItemEvents } from "./item.ts";

export interface McpCallStart {
  id: string;
  server: string;
  name: string;
  approvalRequestId: string | null;
}

export type McpCallResult = { output: string } | { error: string };

export class McpCallEvents extends ItemEvents<McpCallItem> {
  constructor({ id, server, name, approvalRequestId }: McpCallStart, outputIndex: number) {
    super(
      {
        id,
        type: "mcp_call",
        status: "in_progress",
        approval_request_id: approvalRequestId,
        server_label: server,
        name,
        arguments: "",
        output: null,
        error: null,
      },
      outputIndex,
    );
  }

  /** Of a call that was told so far and has no result. */
  static told(item: McpCallItem, outputIndex: number): McpCallEvents {
    const { id, server_label: server, name, approval_request_id: approvalRequestId } = item;
    const events = new McpCallEvents({ id, server, name, approvalRequestId }, outputIndex);
    Object.assign(events.item, item);
    return events;
  }

  override open(): UnnumberedEvent[] {
    return [...super.open(), this.ownEvent("response.mcp_call.in_progress")];
  }

  delta(delta: string): UnnumberedEvent[] {
    this.item.arguments += delta;
    return [this.ownEvent("response.mcp_call_arguments.delta", { delta })];
  }

  completeArguments(): UnnumberedEvent[] {
    const missing = this.item.arguments === "" ? this.delta("{}") : [];
    const whole = { arguments: this.item.arguments };
    return [...missing, this.ownEvent("response.mcp_call_arguments.done", whole)];
  }

  answer(result: McpCallResult): UnnumberedEvent[] {
    Object.assign(this.item, result);
    const status = "error" in result ? "failed" : "completed";
    return [this.ownEvent(`response.mcp_call.${status}`), this.done(status)];
  }

  /** Cut before it was whole, or before it was run. */
  cut(): UnnumberedEvent[] {
    return [this.done("incomplete")];
  }
}

/** The list is known before the response begins, so its events come at once. */
export function mcpListToolsEvents(item: McpListToolsItem, outputIndex: number): UnnumberedEvent[] {
  const end = item.error === null ? "completed" : "failed";
  return [
    { type: added, output_index: outputIndex, item: { ...item, tools: [] } },
    ...["in_progress", end].map((state) => ({
      type: `response.mcp_list_tools.${state}`,
      output_index: outputIndex,
      item_id: item.id,
    })),
    { type: done, output_index: outputIndex, item },
  ];
}
