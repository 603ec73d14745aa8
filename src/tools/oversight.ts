/** What stands around a call: a person who may have to consent, a record of what was done. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ToolCall } from "../chat/types.ts";
import type { Approvals } from "./approvals.ts";
import type { CallAudit } from "./call-audit.ts";
import type { Tool, ToolEvent } from "./types.ts";

export interface ToolOversight {
  /** Whose request it is. */
  owner: string;
  /** Null: nobody can be asked, so that what must be approved is not run. */
  approvals: Pick<Approvals, "ask" | "timeoutMs"> | null;
  audit: Pick<CallAudit, "record"> | null;
  /** Calls that a person has denied in this answer: nobody is asked for the same again. Filled here. */
  denials?: Set<string> | undefined;
}

export type ApprovalState = Extract<ToolEvent, { type: "tool-approval" }>["state"];

export interface Refusal {
  outcome: "denied" | "cancelled";
  /** For the model. */
  content: string;
}

/** @returns null: the call may run */
export async function seekApproval(
  call: ToolCall,
  tool: Tool,
  oversight: ToolOversight | undefined,
  { signal, tell }: { signal: AbortSignal; tell: (state: ApprovalState) => void },
): Promise<Refusal | null> {
  if ((tool.approval ?? "never") === "never") return null;
  const approvals = oversight?.approvals ?? null;
  if (oversight === undefined || approvals === null)
    return denied("it needs a person's approval, and nobody can be asked here");
  const words = JSON.stringify([call.name, canonicalArguments(call.arguments)]);
  if (oversight.denials?.has(words) === true) return denied("the user denied the same call before");
  tell("asked");
  const decision = await approvals.ask(
    {
      callId: call.id,
      owner: oversight.owner,
      server: tool.server,
      toolName: call.name,
      arguments: call.arguments,
    },
    signal,
  );
  tell(decision.approved ? "approved" : "denied");
  if (decision.approved) return null;
  switch (decision.by) {
    case "cancelled":
      return { outcome: "cancelled", content: "Error: cancelled." };
    case "timeout":
      return denied(`nobody approved it within ${approvals.timeoutMs / 1000} seconds`);
    case "person":
      oversight.denials?.add(words);
      return denied(
        `the user denied it${decision.reason === undefined ? "" : `: ${decision.reason}`}`,
      );
  }
}

function denied(reason: string): Refusal {
  const content = `Error: not run: ${reason}. Do not try it again: answer with what you have, or ask the user.`;
  return { outcome: "denied", content };
}
