/** What stands around a call: a person who may have to consent, a record of what was done. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ToolCall } from "../chat/types.ts";
import type { Approvals } from "./approvals.ts";
import type { CallAudit } from "./call-audit.ts";
import { FermataError } from "../errors.ts";
import type {
  ApprovalPolicy,
  PersonAnswer,
  PersonQuestion,
  SampleRequest,
  Tool,
  ToolCallContext,
  ToolEvent,
} from "./types.ts";

export interface ToolOversight {
  /** Whose request it is. */
  owner: string;
  /** Null: nobody can be asked, so that what must be approved is not run. */
  approvals: Pick<Approvals, "ask" | "timeoutMs"> | null;
  audit: Pick<CallAudit, "started" | "ended"> | null;
  /** Default: yes. */
  mayRunTools?: boolean | undefined;
  /** The person who looks on is asked about tools that are not read-only and have no policy. Default: no. */
  asksPerson?: boolean | undefined;
  /** A person looks on, who can answer questions of tools' servers. Default: no. */
  isWatched?: boolean | undefined;
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

interface Asking {
  call: ToolCall;
  tool: Tool;
  oversight: ToolOversight | undefined;
  sample: ToolCallContext["sample"];
  /** Of the call. */
  signal: AbortSignal;
  tell(state: ApprovalState, question: PersonQuestion): void;
  /** Keeps the call from counting as silent meanwhile. */
  awake<Result>(work: Promise<Result>): Promise<Result>;
}

/** What a call may ask while it runs. */
export function questionsOf(asking: Asking): Pick<ToolCallContext, "owner" | "ask" | "sample"> {
  const { oversight, sample } = asking;
  const ask = askerOf(asking);
  const mayDraw = async (request: SampleRequest): Promise<boolean> => {
    if (oversight?.asksPerson !== true || ask === undefined) return true;
    const said = request.messages.map(({ content }) => content).join("\n");
    const message = `${asking.tool.server} asks the model (at most ${request.maxTokens} tokens): ${said}`;
    return (await ask({ message }, request.signal)).action === "accept";
  };
  return {
    owner: oversight?.owner,
    ask,
    sample:
      sample &&
      (async (request) => {
        if (await mayDraw(request)) return await asking.awake(sample(request));
        throw new FermataError("cancelled", "The user does not want the model to be asked.");
      }),
  };
}

/** One question at a time: they wait under the id of the call. */
function askerOf({ call, tool, oversight, signal, tell, awake }: Asking): ToolCallContext["ask"] {
  const { approvals = null, isWatched = false, owner = "" } = oversight ?? {};
  if (approvals === null || !isWatched) return undefined;
  const { id: callId, arguments: args } = call;
  let last: Promise<unknown> = Promise.resolve();
  const ask = async (question: PersonQuestion, ended: AbortSignal): Promise<PersonAnswer> => {
    if (ended.aborted) return { action: "cancel" };
    tell("asked", question);
    const request = { callId, owner, server: tool.server, toolName: call.name, arguments: args };
    const decision = await approvals.ask({ ...request, question }, ended);
    tell(decision.approved ? "approved" : "denied", question);
    if (decision.approved) return { action: "accept", content: decision.content };
    return { action: decision.by === "person" ? "decline" : "cancel" };
  };
  return async (question, cancelled) => {
    const answer = last.then(() => ask(question, AbortSignal.any([signal, cancelled])));
    last = answer;
    return await awake(answer);
  };
}

function denied(reason: string): Consent {
  const content = `Error: not run: ${reason}. Do not try it again: answer with what you have, or ask the user.`;
  return { mayRun: false, outcome: "denied", content };
}
