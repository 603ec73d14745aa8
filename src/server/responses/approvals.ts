/** Consents of the user to calls that an earlier response asked about. */

import type { Approvals } from "../../tools/approvals.ts";
import type { ToolOversight } from "../../tools/oversight.ts";
import { runTool } from "../../tools/tool-run.ts";
import { fieldError } from "../body/field.ts";
import { newId } from "../answer/ids.ts";
import type { Item } from "./types.ts";
import type { ApprovedCall } from "./run.ts";
import type { ToolPlan } from "./tool-plan.ts";

export interface ApprovalLimits {
  timeoutMs: number;
  signal: AbortSignal;
  oversight: ToolOversight;
  issued: Pick<Approvals, "redeem">;
}

/** What was asked, as it was asked. */
export function wordsOf(request: { [key: string]: unknown }): string {
  return JSON.stringify([request["server_label"], request["name"], request["arguments"]]);
}

const granted: ToolOversight["approvals"] = {
  timeoutMs: 0,
  ask: async () => ({ approved: true }),
};

/** @throws FermataError of status 400: the tool is not part of this request */
export function approvedCalls(
  before: readonly Item[],
  input: readonly Item[],
  plan: ToolPlan,
  { timeoutMs, signal, oversight, issued }: ApprovalLimits,
): ApprovedCall[] {
  const all = [...before, ...input];
  const requests = new Map(all.map((item) => [item.id, item]));
  // A client that sends its whole history sends consents of calls that were run.
  const done = new Set(
    all.filter(({ type }) => type === "mcp_call").map((item) => item["approval_request_id"]),
  );
  return input.flatMap((item, index): ApprovedCall[] => {
    if (item.type !== "mcp_approval_response" || item["approve"] !== true) return [];
    const request = requests.get(String(item["approval_request_id"]));
    if (request === undefined || done.has(request.id)) return [];
    const name = plan.names.mcpName(String(request["server_label"]), String(request["name"]));
    if (!plan.serverTools.some(({ definition }) => definition.name === name)) {
      const problem = "consents to a call of a tool that this request does not have";
      const remedy = "Send the mcp tool again";
      throw fieldError("invalid_value", `input[${index}].approval_request_id`, problem, remedy);
    }
    const call = { id: newId("mcp"), name, arguments: String(request["arguments"]) };
    // Anybody can write such an item; only one that this server made speaks for what the operator wants asked.
    const isOurs = issued.redeem(oversight.owner, request.id, wordsOf(request));
    const run: ApprovedCall["run"] = async () => {
      const { outcome, content } = await runTool(call, plan.serverTools, {
        timeoutMs,
        signal,
        report: () => {},
        oversight: isOurs ? { ...oversight, approvals: granted } : oversight,
      });
      return outcome === "ok" ? { output: content } : { error: content };
    };
    return [{ call, requestId: request.id, run }];
  });
}
