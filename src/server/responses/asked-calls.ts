/** Calls that responses asked their clients about (`mcp_approval_request`): each consent runs its call once, in this process or a later one. */

import { FermataError } from "../../errors.ts";
import type { ResponseStore } from "../../store/types.ts";
import type { CallJournal, CallState, ToolOversight } from "../../tools/oversight.ts";
import { runTool } from "../../tools/tool-run.ts";
import { newId } from "../answer/ids.ts";
import { fieldError } from "../body/field.ts";
import { isConsent } from "./client-calls.ts";
import type { ApprovedCall } from "./run.ts";
import type { ToolPlan } from "./tool-plan.ts";
import type { Item } from "./types.ts";

interface ApprovalLimits {
  timeoutMs: number;
  signal: AbortSignal;
  oversight: ToolOversight;
}

/** Requests of responses that are not stored are remembered up to this number. */
const maxRemembered = 1000;

export class AskedCalls {
  readonly #store: ResponseStore | null;
  /** What was asked, by owner and id, where nothing is stored. */
  readonly #unstored = new Map<string, string>();
  readonly #running = new Set<string>();

  constructor(store: ResponseStore | null) {
    this.#store = store;
  }

  /** Before the client learns of the request. @param responseId whose output the store has; null: nothing is stored */
  async remember(owner: string, request: Item, responseId: string | null): Promise<void> {
    if (responseId !== null) {
      const state: CallState = { at: "asked", since: Date.now(), mayHaveRun: false };
      return await this.#store!.setHeldCall(responseId, request.id, state);
    }
    this.#unstored.set(keyOf(owner, request), wordsOf(request));
    const [oldest] = this.#unstored.keys();
    if (this.#unstored.size > maxRemembered && oldest !== undefined) this.#unstored.delete(oldest);
  }

  /** The calls that the input approves. @throws FermataError of status 4xx: the tool is not part of this request, or the call runs already */
  async approved(
    before: readonly Item[],
    input: readonly Item[],
    plan: ToolPlan,
    limits: ApprovalLimits,
  ): Promise<ApprovedCall[]> {
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
      approved.push(await this.#approvedCall(request, { name, plan, limits, field }));
    }
    return approved;
  }

  async #approvedCall(
    request: Item,
    {
      name,
      plan,
      limits: { timeoutMs, signal, oversight },
      field,
    }: { name: string; plan: ToolPlan; limits: ApprovalLimits; field: string },
  ): Promise<ApprovedCall> {
    const { owner } = oversight;
    const key = keyOf(owner, request);
    if (this.#running.has(key)) {
      const message = `The call of "${request.id}" runs already. Wait for the response that approved it.`;
      throw new FermataError("already_decided", message, { param: field });
    }
    const journal = await this.#journal(owner, request);
    const call = { id: newId("mcp"), name, arguments: String(request["arguments"]) };
    const run: ApprovedCall["run"] = async () => {
      this.#running.add(key);
      try {
        const { outcome, content } = await runTool(call, plan.serverTools, {
          timeoutMs,
          signal,
          report: () => {},
          oversight: { ...oversight, journal },
        });
        return outcome === "ok" ? { output: content } : { error: content };
      } finally {
        this.#running.delete(key);
      }
    };
    return { call, requestId: request.id, run };
  }

  /**
   * Anybody can write a request into a history; only one that this server made, with its words, speaks for what the
   * operator wants asked. Undefined: it is not ours.
   */
  async #journal(owner: string, request: Item): Promise<CallJournal | undefined> {
    const key = keyOf(owner, request);
    if (this.#unstored.get(key) === wordsOf(request)) {
      this.#unstored.delete(key);
      return { known: () => consented, note: async () => {} };
    }
    const store = this.#store;
    const held = (await store?.heldCall(owner, request.id)) ?? null;
    const asked = held && (await store!.item(owner, request.id));
    if (asked === null || wordsOf(asked) !== wordsOf(request)) return undefined;
    const { responseId, state } = held as { responseId: string; state: CallState };
    const known = state.at === "asked" && !state.mayHaveRun ? consented : state;
    return {
      known: () => known,
      note: (_callId, next) => store!.setHeldCall(responseId, request.id, next),
    };
  }
}

const consented: CallState = { at: "decided", decision: { approved: true, content: {} } };

/** What was asked, as it was asked. */
function wordsOf(request: { [key: string]: unknown }): string {
  return JSON.stringify([request["server_label"], request["name"], request["arguments"]]);
}

function keyOf(owner: string, { id }: Item): string {
  return `${owner}\0${id}`;
}
