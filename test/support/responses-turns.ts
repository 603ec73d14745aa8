/** Generated turns of every kind, each event read by a state machine of its own and by the SDK's accumulator. */

import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { expect } from "vitest";
import { callText } from "./scripted-server.ts";
import { StreamGrammar, type StreamEvent } from "./stream-grammar.ts";

const words = [
  "harbour",
  "lantern",
  "blue",
  "nine",
  "é",
  "🌊",
  "{",
  "<tag>",
  "\n",
  "**bold**",
  '"',
];
const tools = [
  { type: "function", name: "get_weather", parameters: { type: "object" } },
  { type: "namespace", name: "fs", tools: [{ type: "function", name: "stat", parameters: {} }] },
  { type: "custom", name: "patch" },
];

/** A server that says what it is told to. */
export interface TurnWorld {
  url: string;
  /** Where the MCP server's `notes.txt` is. */
  folder: string;
  mcpServer: string;
  /** The engine can be made to fail. */
  canFail: boolean;
  script(userMessage: string, turns: string[], kind: Kind): Promise<void>;
}

/** Numbers that are the same in every run. */
function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 1) >>> 0;
    return state % below;
  };
}

export type Kind =
  | "text"
  | "reasoning"
  | "call"
  | "calls"
  | "text and call"
  | "custom"
  | "truncated"
  | "cancelled"
  | "mcp"
  | "mcp failed"
  | "mcp and call"
  | "approval"
  | "held"
  | "unanswered"
  | "expired"
  | "failed";

const kinds: Kind[] = [
  "text",
  "reasoning",
  "call",
  "calls",
  "text and call",
  "custom",
  "truncated",
  "cancelled",
  "mcp",
  "mcp failed",
  "mcp and call",
  "approval",
  "held",
  "unanswered",
  "expired",
  "failed",
];

export interface Turn {
  kind: Kind;
  body: Record<string, unknown>;
  script: string[];
}

export function turnOf(world: TurnWorld, index: number): Turn {
  const pick = random(index + 1);
  const known = world.canFail ? kinds : kinds.slice(0, -1);
  const turn = known[index % known.length]!;
  // It takes the time that is waited.
  const isRare = turn === "expired" && Math.floor(index / known.length) % 5 > 0;
  const kind = isRare ? "text" : turn;
  const text = (): string =>
    Array.from({ length: 1 + pick(8) }, () => words[pick(words.length)]).join(" ");
  const call = (name = pick(2) === 0 ? "get_weather" : "fs__stat"): string =>
    callText(name, pick(4) === 0 ? {} : { place: text(), deep: { list: [1, null, text()] } });
  const readNothing = callText("read_text_file", { path: `${world.folder}/nothing.txt` });
  const readNotes = callText("read_text_file", { path: `${world.folder}/notes.txt` });
  const mcp = {
    type: "mcp",
    server_label: world.mcpServer,
    require_approval: "never",
    allowed_tools: ["read_text_file"],
  };
  const body: Turn["body"] = { input: `turn ${index}`, tools };
  if (pick(3) === 0) body["fermata"] = { events: "extended" };
  switch (kind) {
    case "text":
      return { kind, body, script: [text()] };
    case "reasoning":
      return { kind, body, script: [`<think>\n${text()}\n</think>\n\n${text()}`] };
    case "failed":
    case "call":
      return { kind, body, script: [call()] };
    case "calls":
      return { kind, body, script: [[call(), call(), call()].join("\n")] };
    case "text and call":
      return { kind, body, script: [`${text()}\n${call()}`] };
    case "custom":
      return { kind, body, script: [`${callText("patch", { input: text() })}\n${call()}`] };
    case "truncated":
      body["max_output_tokens"] = 1 + pick(30);
      return { kind, body, script: [`${text()}\n${callText("patch", { input: text() })}`] };
    case "cancelled":
      body["background"] = true;
      return { kind, body, script: [`${text()} ${text()} ${text()}\n${call()}`] };
    case "mcp":
      body["tools"] = [mcp];
      return { kind, body, script: [[readNotes, readNotes].join("\n"), text()] };
    case "mcp failed":
      body["tools"] = [mcp];
      return { kind, body, script: [[readNothing, readNotes].join("\n"), text()] };
    case "mcp and call":
      body["tools"] = [mcp, ...tools];
      return { kind, body, script: [`${readNotes}\n${call()}`] };
    case "approval":
      body["tools"] = [{ ...mcp, require_approval: "always" }];
      return { kind, body, script: [readNotes] };
    case "held":
    case "unanswered":
    case "expired":
      body["fermata"] = { ...(body["fermata"] as object), tools: "held" };
      return { kind, body, script: [[call(), call()].join("\n"), text()] };
  }
}

export async function runTurn(
  world: TurnWorld,
  index: number,
): Promise<{ kind: Kind; response: Record<string, unknown> }> {
  const { kind, body, script } = turnOf(world, index);
  await world.script(body["input"] as string, script, kind);
  const reply = await fetch(`${world.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, stream: true, temperature: 0 }),
  });
  expect(reply.status).toBe(200);
  const isExtended = (body["fermata"] as { events?: string } | undefined)?.events === "extended";
  const grammar = new StreamGrammar();
  let snapshot: Response | undefined;
  let id = "";
  let cancelled = false;
  let answering: Promise<unknown> = Promise.resolve();
  let text = "";
  for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data === undefined || data === "data: [DONE]") continue;
      const event = JSON.parse(data.slice(6)) as StreamEvent;
      expect(block.startsWith(`event: ${event.type}\n`)).toBe(true);
      grammar.read(event);
      if (!isExtended)
        snapshot = accumulateResponse(event as unknown as ResponseStreamEvent, snapshot);
      if (event.sequence_number === 0) id = (event["response"] as { id: string }).id;
      if (kind === "cancelled" && !cancelled && event.sequence_number > 6 + (index % 5)) {
        cancelled = true;
        answering = post(world, `/v1/responses/${id}/cancel`, {});
      }
      if (kind === "held" && event.type === "response.function_call_arguments.done")
        answering = answering.then(() => answer(world, id, event["item_id"] as string));
      if (kind === "unanswered" && event.type === "response.function_call_arguments.done")
        answering = answering.then(() => giveUp(world, id, index));
    }
  }
  await answering;
  grammar.close();
  if (kind === "mcp failed") {
    const calls = (grammar.response["output"] as { status?: string }[]).slice(1, 3);
    expect(calls.map(({ status }) => status)).toEqual(["failed", "completed"]);
  }
  if (snapshot !== undefined) expect(snapshot.output).toEqual(grammar.response["output"]);
  const stored = await (await fetch(`${world.url}/v1/responses/${id}`)).json();
  if (kind !== "unanswered") expect(stored).toEqual(grammar.response);
  return { kind, response: grammar.response };
}

async function answer(world: TurnWorld, id: string, itemId: string): Promise<void> {
  const response = (await (await fetch(`${world.url}/v1/responses/${id}`)).json()) as {
    output: { id: string; call_id: string }[];
  };
  const callId = response.output.find((item) => item.id === itemId)!.call_id;
  const output = [{ type: "output_text", text: "sunny" }];
  const reply = await post(world, `/v1/responses/${id}/tool_outputs`, {
    tool_call_id: callId,
    output,
  });
  expect(reply.status).toBe(200);
}

/** A new turn without the outputs, once all calls are there. */
async function giveUp(world: TurnWorld, id: string, index: number): Promise<void> {
  const { output } = (await (await fetch(`${world.url}/v1/responses/${id}`)).json()) as {
    output: { type: string; arguments: string }[];
  };
  const calls = output.filter(({ type }) => type === "function_call");
  if (calls.length < 2) return;
  await new Promise((resolve) => setTimeout(resolve, 50));
  await world.script(`never mind ${index}`, ["Well."], "text");
  const input = `never mind ${index}`;
  await post(world, "/v1/responses", { input, previous_response_id: id, max_output_tokens: 8 });
}

function post(world: TurnWorld, path: string, body: object): Promise<globalThis.Response> {
  return fetch(`${world.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Runs turns side by side. @returns how often each kind ended in which way */
export async function runTurns(
  world: TurnWorld,
  turnCount: number,
  together: number,
): Promise<Map<string, number>> {
  const ends = new Map<string, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < turnCount) {
      const index = next++;
      const { kind, response } = await runTurn(world, index).catch((error: unknown) => {
        const turn = `turn ${index} (${turnOf(world, index).kind})`;
        throw new Error(`${turn}: ${String(error)}`, { cause: error });
      });
      const types = (response["output"] as { type: string }[]).map(({ type }) => type);
      const key = `${kind}: ${String(response["status"])} ${[...new Set(types)].join("+")}`;
      ends.set(key, (ends.get(key) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: together }, worker));
  return ends;
}

/** Each kind did what it is named for. */
export const everyEnd = [
  "text: completed message",
  "reasoning: completed reasoning+message",
  "call: completed function_call",
  "calls: completed function_call",
  "text and call: completed message+function_call",
  "custom: completed custom_tool_call+function_call",
  "truncated: incomplete",
  "cancelled: cancelled",
  "mcp: completed mcp_list_tools+mcp_call+message",
  "mcp failed: completed mcp_list_tools+mcp_call+message",
  "mcp and call: completed mcp_list_tools+mcp_call+function_call",
  "approval: completed mcp_list_tools+mcp_approval_request",
  "held: completed function_call+message",
  "unanswered: cancelled function_call",
  "expired: failed function_call",
];
