/** Two calls that are held for their client, and what of them no log may have. */

import { expect } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { callEvents, finish, type ScriptStep } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { type Event } from "./responses-world.ts";

export const secret = "hunter2";
export const call: ToolCall = {
  id: "call_1",
  name: "list_files",
  arguments: `{"path":"${secret}"}`,
};
export const other: ToolCall = { id: "call_2", name: "list_files", arguments: "{}" };
export const tools = [{ type: "function", name: "list_files" }];
export const held: ScriptStep[] = [
  ...callEvents(call),
  ...callEvents(other, 1),
  { type: "hold", calls: [call, other], usage },
  { type: "content", text: "Done." },
  finish("stop"),
];

export function idsOf(events: readonly Event[]): { response: string; items: string[] } {
  const created = events[0]!["response"] as { id: string };
  const added = events.filter(({ type }) => type === "response.output_item.added");
  return { response: created.id, items: added.map(({ item }) => (item as { id: string }).id) };
}

/** The arguments of the call stand in no line. */
export function noSecrets(lines: readonly unknown[]): void {
  expect(JSON.stringify(lines)).not.toContain(secret);
  expect(JSON.stringify(lines)).not.toContain('"arguments"');
}
