/** Consents of the user to calls that an earlier response asked about. */

import { runTool } from "../../tools/tool-run.ts";
import { fieldError } from "../openai/fields.ts";
import { newId } from "../openai/responses/ids.ts";
import type { Item } from "../openai/responses/types.ts";
import type { ApprovedCall } from "./response-run.ts";
import type { ToolPlan } from "./tool-plan.ts";

export interface ApprovalLimits {
  timeoutMs: number;
  signal: AbortSignal;
}

/** @throws FermataError of status 400: the tool is not part of this request */
export function approvedCalls(
  before: readonly Item[],
  input: readonly Item[],
  plan: ToolPlan,
  { timeoutMs, signal }: ApprovalLimits,
): ApprovedCall[] {
  const requests = new Map([...before, ...input].map((item) => [item.id, item]));
  return input.flatMap((item, index): ApprovedCall[] => {
    if (item.type !== "mcp_approval_response" || item["approve"] !== true) return [];
    const request = requests.get(String(item["approval_request_id"]));
    if (request === undefined) return [];
    const name = plan.names.mcpName(String(request["server_label"]), String(request["name"]));
    if (!plan.serverTools.some(({ definition }) => definition.name === name)) {
      const problem = "consents to a call of a tool that this request does not have";
      const remedy = "Send the mcp tool again";
      throw fieldError("invalid_value", `input[${index}].approval_request_id`, problem, remedy);
    }
    const call = { id: newId("mcp"), name, arguments: String(request["arguments"]) };
    const run: ApprovedCall["run"] = async () => {
      const { outcome, content } = await runTool(call, plan.serverTools, {
        timeoutMs,
        signal,
        report: () => {},
      });
      return outcome === "ok" ? { output: content } : { error: content };
    };
    return [{ call, requestId: request.id, run }];
  });
}
