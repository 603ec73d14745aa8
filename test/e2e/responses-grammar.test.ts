// Generated turns of every kind through the real server and engine, the choice of tokens scripted: each
// event is read by a state machine of its own and by the SDK's accumulator.
import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { StreamGrammar, type StreamEvent } from "../support/stream-grammar.ts";

const turnCount = Number(process.env["FERMATA_GRAMMAR_TURNS"] ?? 600);
const together = 8;
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
];

let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer({ files: { "notes.txt": "At nine." }, store: true });
});

afterAll(() => server.close());

/** Numbers that are the same in every run. */
function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 1) >>> 0;
    return state % below;
  };
}

type Kind =
  | "text"
  | "reasoning"
  | "call"
  | "calls"
  | "text and call"
  | "truncated"
  | "cancelled"
  | "mcp"
  | "mcp and call"
  | "approval"
  | "held"
  | "unanswered";

const kinds: Kind[] = [
  "text",
  "reasoning",
  "call",
  "calls",
  "text and call",
  "truncated",
  "cancelled",
  "mcp",
  "mcp and call",
  "approval",
  "held",
  "unanswered",
];

interface Turn {
  kind: Kind;
  body: Record<string, unknown>;
  script: string[];
}

function turnOf(index: number): Turn {
  const pick = random(index + 1);
  const kind = kinds[index % kinds.length]!;
  const text = (): string =>
    Array.from({ length: 1 + pick(8) }, () => words[pick(words.length)]).join(" ");
  const call = (name = pick(2) === 0 ? "get_weather" : "fs__stat"): string =>
    callText(name, pick(4) === 0 ? {} : { place: text(), deep: { list: [1, null, text()] } });
  const readNotes = callText("read_text_file", { path: `${server.folder}/notes.txt` });
  const mcp = { type: "mcp", server_label: server.mcpServer, require_approval: "never" };
  const body: Turn["body"] = { input: `turn ${index}`, tools };
  if (pick(3) === 0) body["fermata"] = { events: "extended" };
  switch (kind) {
    case "text":
      return { kind, body, script: [text()] };
    case "reasoning":
      return { kind, body, script: [`<think>\n${text()}\n</think>\n\n${text()}`] };
    case "call":
      return { kind, body, script: [call()] };
    case "calls":
      return { kind, body, script: [[call(), call(), call()].join("\n")] };
    case "text and call":
      return { kind, body, script: [`${text()}\n${call()}`] };
    case "truncated":
      body["max_output_tokens"] = 1 + pick(30);
      return { kind, body, script: [`${text()}\n${call()}`] };
    case "cancelled":
      body["background"] = true;
      return { kind, body, script: [`${text()} ${text()} ${text()}\n${call()}`] };
    case "mcp":
      body["tools"] = [mcp];
      return { kind, body, script: [[readNotes, readNotes].join("\n"), text()] };
    case "mcp and call":
      body["tools"] = [mcp, ...tools];
      return { kind, body, script: [`${readNotes}\n${call()}`] };
    case "approval":
      body["tools"] = [{ ...mcp, require_approval: "always" }];
      return { kind, body, script: [readNotes] };
    case "held":
    case "unanswered":
      body["fermata"] = { ...(body["fermata"] as object), tools: "held" };
      return { kind, body, script: [[call(), call()].join("\n"), text()] };
  }
}

async function run(index: number): Promise<{ kind: Kind; response: Record<string, unknown> }> {
  const { kind, body, script } = turnOf(index);
  await server.script(body["input"] as string, script);
  const reply = await fetch(`${server.url}/v1/responses`, {
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
        answering = post(`/v1/responses/${id}/cancel`, {});
      }
      if (kind === "held" && event.type === "response.function_call_arguments.done")
        answering = answering.then(() => answer(id, event["item_id"] as string));
      if (kind === "unanswered" && event.type === "response.function_call_arguments.done")
        answering = answering.then(() => giveUp(id, index));
    }
  }
  await answering;
  grammar.close();
  if (snapshot !== undefined) expect(snapshot.output).toEqual(grammar.response["output"]);
  const stored = await (await fetch(`${server.url}/v1/responses/${id}`)).json();
  if (kind !== "unanswered") expect(stored).toEqual(grammar.response);
  return { kind, response: grammar.response };
}

async function answer(id: string, itemId: string): Promise<void> {
  const response = (await (await fetch(`${server.url}/v1/responses/${id}`)).json()) as {
    output: { id: string; call_id: string }[];
  };
  const callId = response.output.find((item) => item.id === itemId)!.call_id;
  const output = [{ type: "output_text", text: "sunny" }];
  const reply = await post(`/v1/responses/${id}/tool_outputs`, { tool_call_id: callId, output });
  expect(reply.status).toBe(200);
}

/** A new turn without the outputs, once all calls are there. */
async function giveUp(id: string, index: number): Promise<void> {
  const { output } = (await (await fetch(`${server.url}/v1/responses/${id}`)).json()) as {
    output: { type: string; arguments: string }[];
  };
  const calls = output.filter(({ type }) => type === "function_call");
  if (calls.length < 2) return;
  await new Promise((resolve) => setTimeout(resolve, 50));
  await server.script(`never mind ${index}`, ["Well."]);
  const input = `never mind ${index}`;
  await post("/v1/responses", { input, previous_response_id: id, max_output_tokens: 8 });
}

function post(path: string, body: object): Promise<globalThis.Response> {
  return fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

test(`${turnCount} generated turns keep to the grammar`, { timeout: 1_800_000 }, async () => {
  const ends = new Map<string, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < turnCount) {
      const index = next++;
      const { kind, response } = await run(index).catch((error: unknown) => {
        throw new Error(`turn ${index} (${turnOf(index).kind}): ${String(error)}`, {
          cause: error,
        });
      });
      const types = (response["output"] as { type: string }[]).map(({ type }) => type);
      const key = `${kind}: ${String(response["status"])} ${[...new Set(types)].join("+")}`;
      ends.set(key, (ends.get(key) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: together }, worker));
  // Each kind did what it is named for.
  const seen = [...ends.keys()].join("\n");
  for (const wanted of [
    "text: completed message",
    "reasoning: completed reasoning+message",
    "call: completed function_call",
    "calls: completed function_call",
    "text and call: completed message+function_call",
    "truncated: incomplete",
    "cancelled: cancelled",
    "mcp: completed mcp_list_tools+mcp_call+message",
    "mcp and call: completed mcp_list_tools+mcp_call+function_call",
    "approval: completed mcp_list_tools+mcp_approval_request",
    "held: completed function_call+message",
    "unanswered: cancelled function_call",
  ])
    expect(seen).toContain(wanted);
  console.log([...ends].map(([key, count]) => `${count} ${key}`).join("\n"));
});
