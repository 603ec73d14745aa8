/** Calls that wait for a person: listed, and decided, here or at the process that asks. */

import type { Route } from "../route.ts";
import { answer, choice, list, string, boolean, object, whole } from "../body/shapes.ts";
import { FermataError } from "../../errors.ts";
import type { BranchStore, QuestionState, SharedStore } from "../../store/types.ts";
import {
  alreadyDecided,
  type Approvals,
  checkNamed,
  type PendingApproval,
  type PersonDecision,
} from "../../tools/approvals.ts";
import { handOver, takeHandedOver, takenOver } from "../answer/shared-runs.ts";
import { optional, readBody, required, type FieldTable } from "../body/field.ts";
import { oneOf, record, text } from "../body/values.ts";
import type { RouteContext } from "../context.ts";

export const decisionFields = {
  decision: required(
    oneOf(["approve", "deny", "cancel"], "decision"),
    "`cancel` leaves a question of a tool's server without an answer",
  ),
  reason: optional(text({ max: 2000 })),
  content: optional(record("Send an object"), "the answer to a question that has a schema"),
  asking_id: optional(
    text({ max: 100 }),
    "of the question that is answered: 409 if another one is asked since; without it, a call that may have run is not approved",
  ),
} satisfies FieldTable;

const pendingApproval = answer(
  {
    call_id: string,
    asking_id: string,
    server: string,
    tool_name: string,
    arguments: string,
    asked_at: whole,
  },
  { question: answer({ message: string }, { schema: object, url: string }), may_have_run: boolean },
);

/**
 * GET /api/approvals: calls that wait for a person, or whose server asks one. POST /api/approvals/{call_id}: the person's answer. Of
 * processes that share a store, each has the calls of all.
 */
export function approvalRoutes({ services, warnings }: RouteContext): Route[] {
  const { approvals, store, branches = null } = services;
  const shared = store?.shared ?? null;
  if (shared !== null) share(approvals, shared);
  const reading = { warn: warnings.warn };
  return [
    {
      at: "GET /api/approvals",
      summary:
        "Calls of your requests that wait for a person's consent, or for the answer to a question of their server.",
      answer: answer({ approvals: list(pendingApproval) }),
      config: { answersWhileDraining: true },
      handler: async (request) => {
        const owner = request.owner;
        const elsewhere = ((await shared?.openQuestions(owner)) ?? []) as PendingApproval[];
        return { approvals: [...approvals.pending(owner), ...elsewhere].map(wireApproval) };
      },
    },
    {
      at: "POST /api/approvals/:call_id",
      summary: "A person's answer to a call that waits for it.",
      request: decisionFields,
      answer: answer({
        call_id: string,
        decision: choice("approve", "deny", "cancel"),
      }),
      config: { answersWhileDraining: true },
      handler: async (request, reply) => {
        const { call_id: callId } = request.params as { call_id: string };
        const show = 'Send {"decision": "approve"} or {"decision": "deny"}';
        const { asking_id: askingId, ...answer } = readBody(
          decisionFields,
          request.body,
          reading,
          show,
        );
        const said = { ...answer, askingId };
        await decide({ approvals, shared, branches }, { owner: request.owner, callId, said });
        return await reply.send({ call_id: callId, decision: said.decision });
      },
    },
  ];
}

interface Decided {
  owner: string;
  callId: string;
  said: PersonDecision;
  /** The process that asks. Null: it is gone. Undefined: an earlier Fermata hands it over. */
  asker?: string | null;
}

function share(approvals: Approvals, shared: SharedStore): void {
  approvals.showOn({
    show: (question) => shared.openQuestion(question.owner, question.callId, question),
    remove: (callId, end) => shared.closeQuestion(callId, end),
    settle: (owner, callId) => shared.settleQuestion(owner, callId),
  });
  takeHandedOver(shared, (callId, { owner, said, asker }: Decided) => {
    // What was decided here may be asked by another process since.
    const wasAskedHere = asker === undefined || asker === shared.processId;
    const isHere =
      approvals.waits(owner, callId) || (wasAskedHere && approvals.hasDecided(owner, callId));
    return isHere ? () => approvals.decide(owner, callId, said) : null;
  });
}

interface Places {
  approvals: Approvals;
  shared: SharedStore | null;
  branches: BranchStore | null;
}

/**
 * Here, or at the process that asks, or asks again what one asked that is gone. As long as the journal of a run that goes on has the
 * call as asked, its decision is not too late: it waits for the next asker, or is sent again.
 */
async function decide(
  { approvals, shared, branches }: Places,
  { owner, callId, said }: Decided,
): Promise<void> {
  const decideHere = (): Promise<void> => approvals.decide(owner, callId, said);
  if (shared === null) {
    const isKnown = approvals.waits(owner, callId) || approvals.hasDecided(owner, callId);
    if (!isKnown && (await branches?.callOfRun(owner, callId)) === "asked") throw early(callId);
    return await decideHere();
  }
  if (approvals.waits(owner, callId) && (await isKept(decideHere))) return;
  const stateNow = (): Promise<QuestionState | null> => shared.questionState(owner, callId);
  const isOpen = async (): Promise<boolean> => ((await stateNow())?.at ?? "decided") !== "decided";
  const state = await stateNow();
  if (state?.at === "decided") throw alreadyDecided(callId);
  if (state?.at === "open") checkNamed(state.question as PendingApproval, said.askingId);
  const asker = state?.at === "open" ? state.asker : null;
  const body = { owner, callId, said, asker };
  if (state !== null && (await handOver(callId, body, { shared, isOpen })) !== null) return;
  const last = await stateNow();
  if (last?.at === "decided") throw alreadyDecided(callId);
  if (last?.at === "open") throw silent(callId);
  if (last?.at === "left") throw early(callId);
  await decideHere();
}

/** False: this process was taken for dead, and another one asks. @throws as it */
async function isKept(decideHere: () => Promise<void>): Promise<boolean> {
  try {
    await decideHere();
    return true;
  } catch (error) {
    if (error === takenOver) return false;
    throw error;
  }
}

function silent(callId: string): FermataError {
  const message = `The server that asks about the call "${callId}" does not answer. Send the decision again.`;
  return new FermataError("engine_closed", message, { param: "call_id" });
}

function early(callId: string): FermataError {
  const message = `The call "${callId}" is about to be asked about again, once its run goes on. Send the decision again.`;
  return new FermataError("engine_closed", message, { param: "call_id" });
}

function wireApproval(pending: PendingApproval) {
  const { callId, askingId, server, toolName, arguments: args, askedAt } = pending;
  const { question, mayHaveRun } = pending;
  return {
    call_id: callId,
    asking_id: askingId,
    server,
    tool_name: toolName,
    arguments: args,
    asked_at: Math.floor(askedAt / 1000),
    ...(question === undefined ? {} : { question }),
    ...(mayHaveRun === true && { may_have_run: true }),
  };
}
