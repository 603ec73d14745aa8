import type { McpCallItem, UnnumberedEvent } from "../types.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

const inProgress = "response.mcp_call.in_progress";
const argumentsDelta = "response.mcp_call_arguments.delta";
const argumentsDone = "response.mcp_call_arguments.done";
const completed = "response.mcp_call.completed";
const failed = "response.mcp_call.failed";

export const mcpCallGrammar: ItemGrammar = {
  item: "mcp_call",
  follows: {
    [added]: [inProgress],
    [inProgress]: [argumentsDelta, argumentsDone, done],
    [argumentsDelta]: [argumentsDelta, argumentsDone, done],
    [argumentsDone]: [completed, failed, done],
    [completed]: [done],
    [failed]: [done],
  },
};

export interface McpCallStart {
  id: string;
  server: string;
  name: string;
  approvalRequestId?: string | null;
}

export type McpCallResult = { output: string } | { error: string };

/** A call that this server runs on an MCP server. */
export class McpCallEvents {
  readonly item: McpCallItem;
  readonly outputIndex: number;

  constructor({ id, server, name, approvalRequestId = null }: McpCallStart, outputIndex: number) {
    this.item = {
      id,
      type: "mcp_call",
      status: "in_progress",
      approval_request_id: approvalRequestId,
      server_label: server,
      name,
      arguments: "",
      output: null,
      error: null,
    };
    this.outputIndex = outputIndex;
  }

  open(): UnnumberedEvent[] {
    return [
      { type: added, output_index: this.outputIndex, item: { ...this.item } },
      this.#event(inProgress),
    ];
  }

  delta(delta: string): UnnumberedEvent[] {
    this.item.arguments += delta;
    return [this.#event(argumentsDelta, { delta })];
  }

  completeArguments(): UnnumberedEvent[] {
    const missing = this.item.arguments === "" ? this.delta("{}") : [];
    return [...missing, this.#event(argumentsDone, { arguments: this.item.arguments })];
  }

  close(result: McpCallResult): UnnumberedEvent[] {
    const isError = "error" in result;
    this.item.status = isError ? "failed" : "completed";
    if (isError) this.item.error = result.error;
    else this.item.output = result.output;
    return [
      this.#event(isError ? failed : completed),
      { type: done, output_index: this.outputIndex, item: this.item },
    ];
  }

  /** Cut before it was whole, or before it was run. */
  cut(): UnnumberedEvent[] {
    this.item.status = "incomplete";
    return [{ type: done, output_index: this.outputIndex, item: this.item }];
  }

  #event(type: string, rest: object = {}): UnnumberedEvent {
    return { type, output_index: this.outputIndex, item_id: this.item.id, ...rest };
  }
}
