/**
 * DEBUG lines about the states of tool calls and the order of events, without any text. At every level, arguments are
 * logged only by their length.
 */

import { type ClientCallItem, isClientCall, textOfCall } from "../calls/client-calls.ts";
import type { OutputItem, WireEvent } from "../types.ts";

/** The part of a logger that is used. */
export interface EventLogger {
  isLevelEnabled?(level: string): boolean;
  debug(fields: object, message: string): void;
}

export interface EventLogOptions {
  response: string;
  /** The response does not wait for the outputs of its calls. */
  compat: boolean;
}

export class EventLog {
  readonly #log: EventLogger;
  readonly #response: string;
  readonly #suffix: string;
  /** By item id. */
  readonly #calls = new Map<string, { item: ClientCallItem; length: number }>();

  constructor(log: EventLogger, { response, compat }: EventLogOptions) {
    this.#log = log;
    this.#response = response;
    this.#suffix = compat ? " (compat)" : "";
  }

  write(event: WireEvent): void {
    if (this.#log.isLevelEnabled?.("debug") === false) return;
    this.#writeEvent(event);
    switch (event.type) {
      case "response.output_item.added":
        return this.#added(event["item"] as OutputItem);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#delta(event);
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done":
        return this.#completed(event);
      case "response.output_item.done":
        return this.#done(event["item"] as OutputItem);
    }
  }

  /** A call that an earlier response left open is closed before this one begins. */
  closedEarlier(previous: string, callId: string): void {
    const fields = { response: this.#response, prev_response: previous, call_id: callId };
    this.#log.debug(fields, "TOOL_CALL finalize prev");
    this.#log.debug(fields, "TOOL_CALL done prev");
  }

  #writeEvent({ type, sequence_number: number, item_id: itemId, ...event }: WireEvent): void {
    const item = event["item"] as { id?: string } | undefined;
    const id = itemId ?? item?.id;
    this.#log.debug(
      {
        event: type,
        response: this.#response,
        sequence_number: number,
        ...(id === undefined ? {} : { item_id: id }),
        ...(event["output_index"] === undefined ? {} : { output_index: event["output_index"] }),
      },
      "response event",
    );
  }

  #added(item: OutputItem): void {
    if (!isClientCall(item)) return;
    this.#calls.set(item.id, { item, length: 0 });
    const { id, call_id, name } = item;
    this.#log.debug({ response: this.#response, item_id: id, call_id, name }, "TOOL_CALL added");
  }

  #delta(event: WireEvent): void {
    const call = this.#calls.get(String(event["item_id"]));
    if (call === undefined) return;
    call.length += String(event["delta"]).length;
    const { call_id, name } = call.item;
    const fields = { response: this.#response, call_id, name, args_len: call.length };
    this.#log.debug(fields, "TOOL_CALL delta");
  }

  #completed(event: WireEvent): void {
    const call = this.#calls.get(String(event["item_id"]));
    if (call === undefined) return;
    const fields = { response: this.#response, call_id: call.item.call_id };
    this.#log.debug(fields, `TOOL_CALL completed${this.#suffix}`);
  }

  #done(item: OutputItem): void {
    // A call of an earlier response has its line already.
    if (!isClientCall(item) || !this.#calls.delete(item.id)) return;
    const { call_id, name } = item;
    const length = textOfCall(item).length;
    const fields = { response: this.#response, call_id, name, args_len: length };
    this.#log.debug(fields, `TOOL_CALL done${this.#suffix}`);
  }
}
