/** Events of a client's call that OpenAI's wire does not have: sent only to clients that asked for them. */

import type { UnnumberedEvent } from "../types.ts";

export const toolCallDelta = "response.tool_call.delta";
export const toolCallCompleted = "response.tool_call.completed";

export interface ClientCallStart {
  id: string;
  callId: string;
  name: string;
  namespace?: string | undefined;
}

export class ExtendedCallEvents {
  readonly #responseId: string | null;

  /** @param responseId null: the client did not ask for them */
  constructor(responseId: string | null) {
    this.#responseId = responseId;
  }

  /** The delta is a string for clients that parse it as one: all of `text` so far, not the new piece. */
  delta({ call_id, name }: { call_id: string; name: string }, text: string): UnnumberedEvent[] {
    const call = { type: "tool_call", id: call_id, call_id, name, arguments: text };
    return this.#event(toolCallDelta, {
      delta: JSON.stringify([{ ...call, status: "in_progress" }]),
    });
  }

  completed(callId: string): UnnumberedEvent[] {
    return this.#event(toolCallCompleted, { call_id: callId });
  }

  #event(type: string, rest: object): UnnumberedEvent[] {
    if (this.#responseId === null) return [];
    return [{ type, response: { id: this.#responseId }, ...rest }];
  }
}
