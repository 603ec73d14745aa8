// Answers that the fake API gives: what a real run's events look like, made up.
import { setTimeout } from "node:timers/promises";
import type { ConversationEvent, Detail } from "../../../src/client/types.ts";
import { event } from "./fake-api.ts";

export function details(...list: Detail[]): ConversationEvent {
  return event({ details: list });
}

/** A text in pieces, as it is written. */
export async function* spoken(text: string, pieceLength = 12, pauseMs = 0) {
  for (let at = 0; at < text.length; at += pieceLength) {
    yield event({ message: text.slice(at, at + pieceLength) });
    if (pauseMs > 0) await setTimeout(pauseMs);
  }
}

export interface MadeUpCall {
  id: string;
  name: string;
  arguments: string;
  result: string;
  server?: string;
  milliseconds?: number;
  isError?: boolean;
}

/** A call whose arguments stream, which runs and ends. */
export async function* called(call: MadeUpCall, pauseMs = 0) {
  const { id, name, arguments: text, result, server = "files", milliseconds = 42 } = call;
  yield details({ type: "arguments", call_id: id, tool_name: name, delta: "" });
  for (const piece of text.match(/[\s\S]{1,8}/g) ?? []) {
    yield details({ type: "arguments", call_id: id, tool_name: name, delta: piece });
    if (pauseMs > 0) await setTimeout(pauseMs);
  }
  yield toolCall(id, name, "call", "", { arguments: text, server });
  yield details({ type: "state", call_id: id, state: "running" });
  if (pauseMs > 0) await setTimeout(pauseMs * 5);
  const failure = call.isError === true ? { error: "tool_error" } : {};
  yield toolCall(id, name, "result", result, { server, milliseconds, ...failure });
}

/** A call that was made, or its result. */
export function toolCall(
  id: string,
  name: string,
  kind: "call" | "result",
  response: string,
  details: object,
): ConversationEvent {
  return event({
    tool_calls: [
      {
        call_id: id,
        event_type: kind,
        tool_name: name,
        tool_response: response,
        tool_call_details: details,
        is_complete: true,
      },
    ],
  });
}

/** Sub-agents that speak side by side, a piece of each in turn. */
export async function* delegated(texts: readonly string[], pieceLength = 16, pauseMs = 0) {
  const ids = texts.map((_, index) => `delegation_${index}`);
  const delegation = (id: string, kind: "delegation_call" | "delegation_result", fields: object) =>
    event({
      tool_calls: [
        {
          call_id: id,
          event_type: kind,
          tool_name: "delegate",
          tool_response: "",
          is_complete: true,
          tool_call_details: { delegate: `reader ${id.at(-1)}`, arguments: '{"task":"Read."}' },
          ...fields,
        },
      ],
    });
  for (const id of ids) yield delegation(id, "delegation_call", {});
  for (const id of ids) yield details({ type: "state", call_id: id, state: "running" });
  const longest = Math.max(...texts.map(({ length }) => length));
  for (let at = 0; at < longest; at += pieceLength) {
    for (const [index, id] of ids.entries()) {
      const part = texts[index]!.slice(at, at + pieceLength);
      if (part === "") continue;
      yield delegation(id, "delegation_result", { stream_part: part, is_complete: false });
    }
    if (pauseMs > 0) await setTimeout(pauseMs);
  }
  for (const [index, id] of ids.entries())
    yield delegation(id, "delegation_result", { tool_response: texts[index]! });
}

/** A page of Markdown with a bit of everything. */
export const markdownPage = `## What the folder says

There are **three files**; the newest is \`notes.txt\`. It links to [the harbour](https://example.org/harbour).

| file | size | read |
|---|---:|---|
| notes.txt | 51 | yes |
| todo.txt | 24 | yes |
| plan.md | 1,204 | no |

1. Open the gate at nine.
2. Bring the lantern:
   - the *blue* one
   - with oil

\`\`\`python
def open_gate(hour: int) -> bool:
    """True from nine on."""
    return hour >= 9
\`\`\`

> The harbour opens at nine.

The tide follows $h(t) = h_0 + A\\cos(\\omega t)$, and over a day

$$
\\int_0^{24} h(t)\\,dt = 24\\,h_0 .
$$
`;
