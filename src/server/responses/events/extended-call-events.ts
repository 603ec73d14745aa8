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

  /** @param delta the new piece: the pieces of a call, joined, are its arguments or its input */
  delta(
    { id, call_id, name }: { id: string; call_id: string; name: string },
    delta: string,
  ): UnnumberedEvent[] {
    return this.#event(toolCallDelta, { item_id: id, call_id, name, delta });
  }

  completed(callId: string): UnnumberedEvent[] {
    return this.#event(toolCallCompleted, { call_id: callId });
  }

  #event(type: string, rest: object): UnnumberedEvent[] {
    if (this.#responseId === null) return [];
    return [{ type, response: { id: this.#responseId }, ...rest }];
  }
}
