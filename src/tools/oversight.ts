/** What stands around a call: a person who may have to consent, a record of what was done. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ToolCall } from "../chat/types.ts";
import type { Approvals } from "./approvals.ts";
import type { CallAudit } from "./call-audit.ts";
import type { ApprovalPolicy, Tool, ToolEvent } from "./types.ts";

export interface ToolOversight {
  /** Whose request it is. */
  owner: string;
  /** Null: nobody can be asked, so that what must be approved is not run. */
  approvals: Pick<Approvals, "ask" | "timeoutMs"> | null;
  audit: Pick<CallAudit, "started" | "ended"> | null;
  /** Default: yes. */
  mayRunTools?: boolean | undefined;
  /** A person looks on: tools are asked about that are not read-only and have no policy. Default: no. */
  asksPerson?: boolean | undefined;
  /** Calls that a person has denied in this answer: nobody is asked for the same again. Filled here. */
  denials?: Set<string> | undefined;
}

export type ApprovalState = Extract<ToolEvent, { type: "tool-approval" }>["state"];

export type Consent =
  /** `approvedBy`: the owner who was asked; null: nobody was. */
  | { mayRun: true; approvedBy: string | null }
  /** `content`: for the model. */
  | { mayRun: false; outcome: "denied" | "cancelled"; content: string };

export function policyOf(
  { approval, readOnly = false }: Pick<Tool, "approval" | "readOnly">,
  asksPerson: boolean,
): ApprovalPolicy {
  return approval ?? (asksPerson && !readOnly ? "always" : "never");
}

export async function seekApproval(
  call: ToolCall,
  tool: Tool,
  oversight: ToolOversight | undefined,
  { signal, tell }: { signal: AbortSignal; tell: (state: ApprovalState) => void },
): Promise<Consent> {
  if (oversight?.mayRunTools === false && tool.clientRuns !== true)
    return denied("the API key of this request may not run tools of the server");
  if (policyOf(tool, oversight?.asksPerson ?? false) === "never")
    return { mayRun: true, approvedBy: null };
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
  if (decision.approved) {
    tool.acceptChange?.();
    return { mayRun: true, approvedBy: oversight.owner };
  }
  switch (decision.by) {
    case "cancelled":
      return { mayRun: false, outcome: "cancelled", content: "Error: cancelled." };
    case "timeout":
      return denied(`nobody approved it within ${approvals.timeoutMs / 1000} seconds`);
    case "person":
      oversight.denials?.add(words);
      return denied(
        `the user denied it${decision.reason === undefined ? "" : `: ${decision.reason}`}`,
      );
  }
}

function denied(reason: string): Consent {
  const content = `Error: not run: ${reason}. Do not try it again: answer with what you have, or ask the user.`;
  return { mayRun: false, outcome: "denied", content };
}
