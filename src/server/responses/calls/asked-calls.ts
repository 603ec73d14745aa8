/** Calls that responses asked their clients about (`mcp_approval_request`): each consent runs its call once, in this process or a later one. */

import { FermataError } from "../../../errors.ts";
import { RecentMap } from "../../../recent-map.ts";
import type { OpenStore } from "../../../store/types.ts";
import type { CallJournal, CallState, ToolOversight } from "../../../tools/oversight.ts";
import { runTool } from "../../../tools/tool-run.ts";
import { TurnsOfEach } from "../../../turns.ts";
import { newId } from "../../answer/ids.ts";
import { fieldError } from "../../body/field.ts";
import { isConsent } from "./client-calls.ts";
import type { ApprovedCall } from "../run-parts.ts";
import type { ToolPlan } from "../tools/tool-plan.ts";
import type { Item } from "../types.ts";

interface ApprovalLimits {
  timeoutMs: number;
  totalTimeoutMs: number | undefined;
  signal: AbortSignal;
  oversight: ToolOversight;
}

/** Requests of responses that are not stored are remembered up to this number. */
const maxRemembered = 1000;

export class AskedCalls {
  readonly #store: OpenStore | null;
  /** What was asked, and what its call has come to, by owner and id, where nothing is stored. */
  readonly #unstored = new RecentMap<string, { words: string; state: CallState }>(maxRemembered);
  /** Of calls that run, by owner and id of what asked: consents of the same call may come side by side, and each sees what the one before it has done. */
  readonly #running = new TurnsOfEach();

  constructor(store: OpenStore | null) {
    this.#store = store;
  }

  /** Before the client learns of the request. @param responseId whose output the store has; null: nothing is stored */
  async remember(owner: string, request: Item, responseId: string | null): Promise<void> {
    const state: CallState = { at: "asked", since: Date.now(), mayHaveRun: false };
    if (responseId !== null) {
      await this.#store!.responses.setHeldCall(responseId, request.id, state);
      return;
    }
    this.#unstored.set(keyOf(owner, request), { words: wordsOf(request), state });
  }

  /** The calls that the input approves. @throws FermataError of status 4xx: the tool is not part of this request, or the call runs already */
  approved(
    before: readonly Item[],
    input: readonly Item[],
    plan: ToolPlan,
    limits: ApprovalLimits,
  ): ApprovedCall[] {
    const all = [...before, ...input];
    const requests = new Map(all.map((item) => [item.id, item]));
    // A client that sends its whole history sends consents of calls that were run.
    const done = new Set(
      all.filter(({ type }) => type === "mcp_call").map((item) => item["approval_request_id"]),
    );
    const approved: ApprovedCall[] = [];
    for (const [index, item] of input.entries()) {
      if (!isConsent(item)) continue;
      const request = requests.get(String(item["approval_request_id"]));
      if (request === undefined || done.has(request.id)) continue;
      const field = `input[${index}].approval_request_id`;
      const name = plan.names.mcpName(String(request["server_label"]), String(request["name"]));
      if (!plan.serverTools.some(({ definition }) => definition.name === name)) {
        const problem = "approves a call of a tool that this request does not have";
        throw fieldError("invalid_value", field, problem, "Send its mcp tool too");
      }
      approved.push(this.#approvedCall(request, { name, plan, limits, field }));
    }
    return approved;
  }

  #approvedCall(
    request: Item,
    {
      name,
      plan,
      limits: { oversight, ...limits },
      field,
    }: { name: string; plan: ToolPlan; limits: ApprovalLimits; field: string },
  ): ApprovedCall {
    const { owner } = oversight;
    const key = keyOf(owner, request);
    if (this.#running.has(key)) throw alreadyRuns(request, field);
    const call = { id: newId("mcp"), name, arguments: String(request["arguments"]) };
    const run: ApprovedCall["run"] = async () => {
      const journal = await this.#journal(owner, request);
      const { outcome, content } = await runTool(call, plan.serverTools, {
        ...limits,
        report: () => {},
        oversight: { ...oversight, journal },
      });
      return outcome === "ok" ? { output: content } : { error: content };
    };
    return { call, requestId: request.id, run: () => this.#running.take(key, run) };
  }

  /**
   * Anybody can write a request into a history; only one that this server made, with its words, speaks for what the
   * operator wants asked. Undefined: it is not ours.
   */
  async #journal(owner: string, request: Item): Promise<CallJournal | undefined> {
    const unstored = this.#unstored.get(keyOf(owner, request));
    if (unstored?.words === wordsOf(request)) {
      const known = stateBehindConsent(unstored.state);
      return {
        known: () => known,
        // Its result is told once: memory does not hold those of all.
        note: async (_callId, next) => {
          if (next.at !== "ended" && !isTimeout(next)) unstored.state = next;
        },
        confirm: async () => {},
      };
    }
    const store = this.#store;
    const held = (await store?.responses.heldCall(owner, request.id)) ?? null;
    const asked = held && (await store!.responses.item(owner, request.id));
    if (asked === null || wordsOf(asked) !== wordsOf(request)) return undefined;
    const { responseId, state } = held as { responseId: string; state: CallState };
    const known = stateBehindConsent(state);
    let last = state;
    return {
      known: () => known,
      note: async (_callId, next) => {
        if (isTimeout(next)) return;
        // Of processes that share the store one runs it.
        const from = next.at === "started" ? last : undefined;
        const isWritten = await store!.responses.setHeldCall(responseId, request.id, next, from);
        if (!isWritten) throw alreadyRuns(request);
        last = next;
      },
      // A response does not go on elsewhere while such a call runs.
      confirm: async () => {},
    };
  }
}

/** Not kept: the consent of a later response asks again. */
function isTimeout(state: CallState): boolean {
  return state.at === "decided" && !state.decision.approved && state.decision.by === "timeout";
}

/** A consent decides what was asked, unless its call was interrupted. */
function stateBehindConsent(state: CallState): CallState {
  if (state.at !== "asked" || state.mayHaveRun) return state;
  return { at: "decided", decision: { approved: true, content: {} } };
}

function alreadyRuns({ id }: Item, param?: string): FermataError {
  const message = `The call of "${id}" runs already. Wait for the response that approved it.`;
  return new FermataError("already_decided", message, { param });
}

/** What was asked, as it was asked. */
function wordsOf(request: { [key: string]: unknown }): string {
  return JSON.stringify([request["server_label"], request["name"], request["arguments"]]);
}

function keyOf(owner: string, { id }: Item): string {
  return `${owner}\0${id}`;
}
