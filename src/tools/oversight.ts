/** What stands around a call: a person who may have to consent, a record of what was done. */

import { canonicalArguments } from "../chat/template/normalize.ts";
import type { ChatMessage, HeldTurn, ToolCall, WrittenRound } from "../chat/types.ts";
import { type Approvals, type Decision, newAskingId } from "./approvals.ts";
import { argumentsToRun, type CallAudit } from "./call-audit.ts";
import { FermataError } from "../errors.ts";
import type {
  ApprovalPolicy,
  PersonAnswer,
  PersonQuestion,
  SampleRequest,
  Tool,
  ToolCallContext,
  ToolEvent,
  ToolRun,
} from "./types.ts";

/** A round that waits for the results of its calls, and what it takes to go on from there. Plain data. */
export interface HeldRound {
  /** What was said behind the prompt, up to the calls. */
  messages: ChatMessage[];
  calls: readonly ToolCall[];
  /** See `ChatRequest`. */
  heldTurn?: HeldTurn | null | undefined;
  /** Of the round behind the results; see `ChatRequest`. Not kept with this round. */
  written?: WrittenRound | undefined;
}

/** What the sub-agent of a delegation has come to. */
export interface DelegationState {
  at: "delegated";
  /** Its last round with calls. Null: it has made none. */
  round: HeldRound | null;
  /** How many of its rounds had calls. */
  number: number;
  /** Its result so far. */
  text: string;
  citations: readonly string[];
  /** How often other processes let it go on from here. */
  resumes: number;
}

/** What a call has come to. */
export type CallState =
  /** `since`: milliseconds since 1970. `askingId`: absent if no person was asked yet. */
  | { at: "asked"; since: number; mayHaveRun: boolean; askingId?: string }
  | { at: "decided"; decision: Decision }
  /** Whether it took effect is unknown until it has ended. */
  | { at: "started" }
  | DelegationState
  | { at: "ended"; run: ToolRun };

/** Keeps what calls come to, so that another process goes on with them and runs none of them twice. */
export interface CallJournal {
  /** What an earlier process left of the call. */
  known(callId: string): CallState | undefined;
  /** Resolves when it is kept. @throws what hinders it: another process may have the call by now */
  note(callId: string, state: CallState): Promise<void>;
  /** @throws as `note`, where the calls are not this process's any more */
  confirm(): Promise<void>;
}

export interface ToolOversight {
  /** Whose request it is. */
  owner: string;
  /** Null: nobody can be asked, so that what must be approved is not run. */
  approvals: Pick<Approvals, "ask" | "recall" | "timeoutMs"> | null;
  audit: Pick<CallAudit, "started" | "ended"> | null;
  /** Undefined: what runs ends with the process. */
  journal?: CallJournal | undefined;
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

export type AskedAbout = Pick<
  Extract<ToolEvent, { type: "tool-approval" }>,
  "question" | "mayHaveRun" | "askingId"
>;

export type TellApproval = (state: ApprovalState, about?: AskedAbout) => void;

export type Consent =
  /** `approvedBy`: the owner who was asked; null: nobody was. */
  | { mayRun: true; approvedBy: string | null }
  /** `content`: for the model. */
  | { mayRun: false; outcome: "denied" | "cancelled" | "error"; content: string };

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
  { signal, tell }: { signal: AbortSignal; tell: TellApproval },
): Promise<Consent> {
  if (oversight?.mayRunTools === false && tool.clientRuns !== true)
    return denied("the API key of this request may not run tools of the server");
  const known = oversight?.journal?.known(call.id);
  if (policyOf(tool, oversight?.asksPerson ?? false) === "never") {
    if (known?.at === "started" && tool.readOnly !== true) return interrupted;
    return { mayRun: true, approvedBy: null };
  }
  const approvals = oversight?.approvals ?? null;
  if (oversight === undefined || approvals === null)
    return denied("it needs a person's approval, and nobody can be asked here");
  const words = JSON.stringify([call.name, canonicalArguments(argumentsToRun(call))]);
  if (oversight.denials?.has(words) === true) return denied("the user denied the same call before");
  const decision =
    known?.at === "decided"
      ? known.decision
      : await ask({ call, tool, approvals, oversight, known, signal, tell });
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
      return denied(`the user denied it${because(decision.reason)}`);
  }
}

/** A sentence goes on behind it. */
function because(reason = ""): string {
  const text = reason.replace(/[\s.]+$/u, "");
  return text === "" ? "" : `: ${text}`;
}

interface Asking {
  call: ToolCall;
  tool: Tool;
  oversight: ToolOversight | undefined;
  sample: ToolCallContext["sample"];
  /** Of the call. */
  signal: AbortSignal;
  tell: TellApproval;
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
  const { id: callId } = call;
  const args = argumentsToRun(call);
  let last: Promise<unknown> = Promise.resolve();
  const ask = async (question: PersonQuestion, ended: AbortSignal): Promise<PersonAnswer> => {
    if (ended.aborted) return { action: "cancel" };
    const askingId = newAskingId();
    const { server } = tool;
    const asked = { callId, owner, server, toolName: call.name, arguments: args, askingId };
    const confirm = oversight?.journal && (() => oversight.journal!.confirm());
    const decision = await approvals.ask({ ...asked, question, confirm }, ended, () =>
      tell("asked", { question, askingId }),
    );
    tell(decision.approved ? "approved" : "denied", { question });
    if (decision.approved) return { action: "accept", content: decision.content };
    return { action: decision.by === "person" ? "decline" : "cancel" };
  };
  return async (question, cancelled) => {
    const answer = last.then(() => ask(question, AbortSignal.any([signal, cancelled])));
    last = answer;
    return await awake(answer);
  };
}
async function ask({
  call,
  tool,
  approvals,
  oversight: { owner, journal },
  known,
  signal,
  tell,
}: {
  call: ToolCall;
  tool: Tool;
  approvals: NonNullable<ToolOversight["approvals"]>;
  oversight: ToolOversight;
  known: CallState | undefined;
  signal: AbortSignal;
  tell: TellApproval;
}): Promise<Decision> {
  const wasAsked = known?.at === "asked";
  const mayHaveRun = wasAsked ? known.mayHaveRun : known?.at === "started";
  const askedAt = wasAsked ? known.since : Date.now();
  // Behind a start it is another question: a decision on the one before does not answer it.
  const askingId = (wasAsked ? known.askingId : undefined) ?? newAskingId();
  // What is not kept is asked again.
  await journal
    ?.note(call.id, { at: "asked", since: askedAt, mayHaveRun, askingId })
    .catch(() => {});
  const request = {
    callId: call.id,
    owner,
    server: tool.server,
    toolName: call.name,
    arguments: argumentsToRun(call),
    askingId,
    askedAt,
    ...(mayHaveRun && { mayHaveRun }),
    confirm: journal && (() => journal.confirm()),
    keep: journal && ((decision: Decision) => journal.note(call.id, { at: "decided", decision })),
  };
  return await approvals.ask(request, signal, () => tell("asked", { mayHaveRun, askingId }));
}

/** Of such a call nobody knows whether it took effect: it is not run again by itself. */
export const interruptedCall =
  "Error: this call was interrupted while it ran. It may have taken effect, and was not run again.";

const interrupted: Consent = { mayRun: false, outcome: "error", content: interruptedCall };

function denied(reason: string): Consent {
  const content = `Error: not run: ${reason}. Do not try it again: answer with what you have, or ask the user.`;
  return { mayRun: false, outcome: "denied", content };
}
