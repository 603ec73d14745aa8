// What every conversation stream must be, written from the frontend guide: throws at the first event that
// is wrong. `close` says whether everything that began has ended.
import { expect } from "vitest";
import type { ConversationEvent, ToolCallResponse } from "../../src/client/types.ts";

interface Seen {
  last: ToolCallResponse;
  parts: string[];
  isDelegation: boolean;
}

const eventTypes = ["call", "result", "delegation_call", "delegation_result"];

export class StreamCheck {
  readonly calls = new Map<string, Seen>();
  message = "";
  #hasEnded = false;

  read(event: ConversationEvent): void {
    expect(this.#hasEnded, "an event after the end").toBe(false);
    expect(typeof event.message).toBe("string");
    expect(event.citations).toBeInstanceOf(Array);
    expect(event.tool_calls).toBeInstanceOf(Array);
    this.message += event.message;
    for (const call of event.tool_calls) this.#readCall(call);
    this.#hasEnded = event.details?.some(({ type }) => type === "end") === true;
  }

  /** All calls have their results. */
  close(): void {
    for (const [id, { last }] of this.calls) {
      expect(last.event_type, id).toMatch(/result$/);
      expect(last.is_complete, id).toBe(true);
    }
  }

  #readCall(call: ToolCallResponse): void {
    const { call_id: id, event_type: type, stream_part: part } = call;
    expect(eventTypes).toContain(type);
    expect(typeof id).toBe("string");
    expect(typeof call.tool_name).toBe("string");
    expect(typeof call.tool_response).toBe("string");
    expect(typeof call.tool_call_details).toBe("object");
    expect(typeof call.is_complete).toBe("boolean");
    const isDelegation = type.startsWith("delegation");
    const seen = this.calls.get(id);
    if (type === "call" || type === "delegation_call") {
      expect(seen, `${id} begins twice`).toBeUndefined();
      expect(call).toMatchObject({ tool_response: "", is_complete: true });
      expect(call).not.toHaveProperty("stream_part");
      if (isDelegation) expect(call.tool_call_details.summary).toMatch(/\S/);
      this.calls.set(id, { last: call, parts: [], isDelegation });
      return;
    }
    expect(seen, `${id} has a result and never began`).toBeDefined();
    expect(seen!.isDelegation).toBe(isDelegation);
    expect(seen!.last.tool_name).toBe(call.tool_name);
    const hasEnded = seen!.last.event_type.endsWith("result") && seen!.last.is_complete;
    expect(hasEnded, `${id} goes on after its end`).toBe(false);
    const parent = call.tool_call_details.parent_call_id;
    expect(parent).toBe(seen!.last.tool_call_details.parent_call_id);
    if (parent !== undefined) {
      expect(call.tool_call_details.agent).toBe(seen!.last.tool_call_details.agent);
      const { last } = this.calls.get(parent)!;
      const isOver = last.event_type.endsWith("result") && last.is_complete;
      expect(isOver, "after its parent").toBe(false);
    }
    if (part !== undefined) seen!.parts.push(part);
    if (!call.is_complete) {
      expect(part).toMatch(/[^]/);
      expect(call.tool_response).toBe("");
    } else if (part !== undefined) {
      // Disjoint parts, which make the whole, whether it was interrupted or not.
      expect(call.tool_response).toBe(seen!.parts.join(""));
    }
    seen!.last = call;
  }
}

export function checkStream(events: readonly ConversationEvent[]): StreamCheck {
  const check = new StreamCheck();
  for (const event of events) check.read(event);
  return check;
}
