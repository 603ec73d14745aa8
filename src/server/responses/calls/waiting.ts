/** What clients send for responses that wait: outputs of their calls, and the turns that follow. Of processes that share a store, any takes it. */

import { FermataError } from "../../../errors.ts";
import { isAtWork } from "../../../store/response-state.ts";
import type { OpenStore } from "../../../store/types.ts";
import type { LiveRuns } from "../../answer/live-run.ts";
import { handOver } from "../../answer/shared-runs.ts";
import { fieldError } from "../../body/field.ts";
import { noResponse } from "../../body/stored.ts";
import { isClientOutput } from "./client-calls.ts";
import type { ResponsesRequest } from "../request.ts";
import type { ResponseRun } from "../run.ts";
import type { Item } from "../types.ts";

/** For a response that another process works on. */
export type Sent = { owner: string } & (
  | { callId: string; output: string }
  /** A turn that follows it. */
  | { input: readonly Item[]; mayResume: boolean }
);

export class WaitingResponses {
  readonly #live: LiveRuns<ResponseRun>;
  readonly #store: OpenStore | null;

  constructor(live: LiveRuns<ResponseRun>, store: OpenStore | null) {
    this.#live = live;
    this.#store = store;
  }

  /** Resolves when the output is kept. @throws FermataError not_found | invalid_value */
  async deliver(owner: string, id: string, callId: string, output: string): Promise<void> {
    const live = await this.#live.meet(owner, id);
    if (live !== null) return await this.#deliverTo(live, callId, output);
    const handed = await this.#handOver(id, { owner, callId, output });
    if (handed === null) throw noResponse(id);
  }

  async #deliverTo(live: ResponseRun, callId: string, output: string): Promise<void> {
    if (live.held === null) {
      const problem = "does not wait for outputs";
      throw fieldError(
        "invalid_value",
        "id",
        problem,
        'Create it with "fermata": {"tools": "held"}',
      );
    }
    await live.held.deliver(callId, output, () => live.keepOutputs());
  }

  /** What another process was sent for a response of this one. Null: it is not here. */
  take(id: string, sent: Sent): (() => Promise<unknown>) | null {
    const { owner } = sent;
    if (this.#live.find(owner, id) === null && !this.#live.expected.has(owner, id)) return null;
    return async () => {
      const live = await this.#live.meet(owner, id);
      if (live === null) throw noResponse(id);
      return "callId" in sent
        ? await this.#deliverTo(live, sent.callId, sent.output)
        : await this.#meet(live, sent.input, sent.mayResume);
    };
  }

  /** Null: no process is at work on it. */
  async #handOver(id: string, sent: Sent): Promise<{ value: unknown } | null> {
    const { responses, shared } = this.#store ?? {};
    if (!shared) return null;
    const found = await responses!.find(sent.owner, id);
    if (found === null || !isAtWork(found.body)) return null;
    return await handOver(id, sent, { shared, isOpen: () => shared.isAtWork(id) });
  }

  /**
   * A request without `stream` resumes a response, if its input is exactly the outputs that the response waits for and
   * the response was asked to wait. Any other turn after such a response ends it and gets an answer of its own.
   * @returns the id of the response that continues
   */
  async meetPrevious(request: ResponsesRequest, owner: string): Promise<string | null> {
    const { previousResponseId: id, input } = request;
    const outputs = input.filter(isClientOutput);
    const live =
      id === null
        ? await this.#waitingFor(
            owner,
            outputs.map((item) => String(item["call_id"])),
          )
        : await this.#live.meet(owner, id);
    const mayResume = id !== null && !request.stream;
    if (live !== null) return (await this.#meet(live, input, mayResume)) ? live.id : null;
    if (id === null) return null;
    return (await this.#handOver(id, { owner, input, mayResume }))?.value === true ? id : null;
  }

  /** @returns whether the response continues */
  async #meet(live: ResponseRun, input: readonly Item[], mayResume: boolean): Promise<boolean> {
    if (live.held === null || live.held.pending.length === 0) {
      const problem = "is still in progress";
      const remedy = "Wait until it is finished, or cancel it";
      throw fieldError("invalid_value", "previous_response_id", problem, remedy);
    }
    const keep = (): Promise<void> => live.keepOutputs();
    if (mayResume && live.resumesByRequest && (await live.held.take(input, keep))) return true;
    live.cancel(new FermataError("cancelled", "A new turn took the place of this one."));
    await live.ended;
    return false;
  }

  /** The response that waits for an output of one of these calls. */
  async #waitingFor(owner: string, callIds: readonly string[]): Promise<ResponseRun | null> {
    if (callIds.length === 0) return null;
    for (const id of this.#live.expected.idsOf(owner)) {
      const { output = [] } = (await this.#store?.responses.items(owner, id)) ?? {};
      const isMeant = output.some((item) => callIds.includes(String(item["call_id"])));
      if (isMeant) await this.#live.meet(owner, id);
    }
    const waits = ({ held, owner: its }: ResponseRun): boolean =>
      its === owner && held !== null && held.pending.some((id) => callIds.includes(id));
    return this.#live.where(waits)[0] ?? null;
  }
}
