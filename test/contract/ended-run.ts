/** A run of a conversation, once it has ended. */

import { expect } from "vitest";
import {
  applyEvent,
  type ConversationState,
  emptyState,
} from "../../src/client/conversation-state.ts";
import type { ConversationEvent } from "../../src/client/types.ts";
import { eventually } from "../support/eventually.ts";
import { checkStream } from "../support/stream-check.ts";
import type { World } from "./fake-services.ts";
import type { Json } from "./responses-world.ts";

export interface Run {
  /** Of the conversation. */
  id: string;
  runId: string;
}

/** The answer, and what a viewer saw of it over all processes. */
export async function ended(
  { app }: Pick<World, "app">,
  { id, runId }: Run,
): Promise<{ message: Json; events: ConversationEvent[]; state: ConversationState }> {
  const message = await eventually(async () => {
    const reply = await app.inject({ url: `/api/conversations/${id}` });
    const last = (reply.json() as Json).messages.at(-1) as Json;
    expect(last.status).not.toBe("running");
    return last;
  });
  const url = `/api/conversations/${id}/stream?run_id=${runId}&details=1`;
  const { body } = await app.inject({ url });
  const lines = body.split("\n");
  const events = lines
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)) as ConversationEvent);
  const numbers = lines.filter((line) => line.startsWith("id: ")).map((line) => +line.slice(4));
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  checkStream(events).close();
  const state = events.reduce(applyEvent, emptyState);
  expect(state.toolCalls.map(({ progress }) => progress)).not.toContain("writing");
  return { message, events, state };
}
