// Traces of a real engine with the shipped model: their rows are those of usage and metrics, a hold contains its tools.
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/run.ts";
import type { Trace, TraceSpan } from "../../src/client/types.ts";
import type { Tool } from "../../src/tools/types.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { metric } from "../support/metric.ts";

let server: ScriptedServer;
const withoutTools = { tool_choice: "none" } as const;
/** How long the tool took by its own clock. */
const took: number[] = [];

/** Its answer is another request's to the same engine, while its caller is held. */
const asksAnother: Tool = {
  definition: { name: "ask_another", parameters: { type: "object", properties: {} } },
  server: "tests",
  async call() {
    const startedAt = performance.now();
    const messages = [{ role: "user" as const, content: "A question beside the first one." }];
    const body = { model: "default", messages, max_tokens: 24, ...withoutTools };
    await server.client.chat.completions.create(body);
    took.push(performance.now() - startedAt);
    return { content: "The harbour opens at nine. ".repeat(20), isError: false };
  },
};

beforeAll(async () => {
  server = await startScriptedServer({
    tools: [asksAnother],
    engine: { threads: 1, contextSize: 4096, parallel: 4, stepTokenBudget: 256 },
  });
});
afterAll(() => server.close());

async function traceOf(id: string): Promise<Trace> {
  const reply = await fetch(`${server.url}/api/traces/${id}`);
  expect(reply.status).toBe(200);
  return (await reply.json()) as Trace;
}

async function metrics() {
  const names = ["prefilled_tokens", "cached_tokens", "generated_tokens", "recomputed_tokens"];
  return await Promise.all(names.map((name) => metric(server, `fermata_${name}_total`)));
}

function contains(outer: TraceSpan, inner: { start_ms: number; end_ms: number | null }): boolean {
  return outer.start_ms <= inner.start_ms && inner.end_ms! <= outer.end_ms!;
}

test("a tool loop: rows as in usage and metrics, and each hold contains its tool", async () => {
  const question = "Ask another one twice.";
  const call = callText("ask_another", {});
  await server.script(question, [call, call, "Both said nine."]);
  const before = await metrics();
  const response = await server.client.responses.create({ model: "default", input: question });
  const after = await metrics();
  expect(response.output_text).toBe("Both said nine.");

  const trace = await traceOf(response.id);
  const { rows } = trace;
  expect(trace).toMatchObject({ status: "complete", endpoint: "/v1/responses", dropped: 0 });
  const { input_tokens: read, output_tokens: written } = response.usage!;
  expect(rows.prompt + rows.resumed).toBe(read);
  expect(rows.generated).toBe(written);
  expect(rows.cached).toBe(response.usage!.input_tokens_details.cached_tokens);
  expect(rows.resumed).toBeGreaterThan(200);
  // Nothing was computed twice.
  expect(rows.prefilled).toBe(rows.prompt + rows.resumed - rows.cached);

  // All that the engine did meanwhile is in the traces of it and of what its tool asked.
  const { traces } = (await (await fetch(`${server.url}/api/traces`)).json()) as {
    traces: Trace[];
  };
  const [first, ...others] = traces.toReversed();
  expect(first!.id).toBe(response.id);
  expect(others.map(({ endpoint }) => endpoint)).toEqual(Array(2).fill("/v1/chat/completions"));
  const sum = (name: keyof Trace["rows"]): number =>
    traces.reduce((total, each) => total + each.rows[name], 0);
  expect(
    ["prefilled", "cached", "generated", "recomputed"].map((name) => sum(name as "cached")),
  ).toEqual(after.map((count, index) => count - before[index]!));

  const { spans } = trace.sequences[0]!;
  for (const [index, span] of spans.entries())
    expect(span.end_ms).toBe(
      spans[index + 1]?.start_ms ?? trace.sequences[0]!.spans.at(-1)!.end_ms,
    );
  const phases = spans.map(({ phase }) => phase).filter((phase) => phase !== "queued");
  const round = ["hold", "resume", "decode"];
  // Where tools are offered, the engine holds at every end token until the parser has looked for a call.
  expect(phases).toEqual(["prepare", "prefill", "decode", ...round, ...round, "hold"]);
  expect(spans.find(({ phase }) => phase === "prefill")).toMatchObject({
    rows: rows.prompt - rows.cached,
    reused: rows.cached,
  });
  const resumes = spans.filter(({ phase }) => phase === "resume");
  expect(resumes.map(({ source }) => source)).toEqual(["hold", "hold"]);
  // What was not computed while it was held is computed at the resume.
  expect(resumes.reduce((total, { rows: count }) => total + count!, 0)).toBeLessThanOrEqual(
    rows.resumed,
  );

  const holds = spans.filter(({ phase }) => phase === "hold");
  expect(trace.calls).toHaveLength(2);
  for (const [index, call] of trace.calls.entries()) {
    expect(call).toMatchObject({ tool: "ask_another", server: "tests", outcome: "ok" });
    expect(contains(holds[index]!, call)).toBe(true);
    // The other request ran within the hold.
    expect(call.end_ms! - call.start_ms).toBeGreaterThanOrEqual(took[index]!);
  }
});

test("two answers with one prompt: the second waits for the first, and copies its cells", async () => {
  const content = "It tells of harbours and ships, and of the sea. ".repeat(60);
  const completion = await server.client.chat.completions.create({
    model: "default",
    messages: [{ role: "user", content }],
    n: 2,
    max_tokens: 4,
    ...withoutTools,
  });
  const trace = await traceOf(completion.id);
  expect(trace.sequences).toHaveLength(2);
  const waits = trace.sequences.flatMap(({ spans }) =>
    spans.filter(({ waits_for: reason }) => reason === "prefix"),
  );
  expect(waits.map(({ behind }) => behind)).toEqual([trace.id]);
  const prefills = trace.sequences.map(({ spans }) =>
    spans.find(({ phase }) => phase === "prefill")!,
  );
  const [computed, copied] = prefills.toSorted((one, other) => one.reused! - other.reused!);
  expect(copied).toMatchObject({ source: "copy", rows: 1 });
  expect(copied!.reused).toBe(computed!.reused! + computed!.rows! - 1);
  expect(trace.rows.prompt + trace.rows.resumed).toBe(2 * (copied!.reused! + 1));
});

test("fermata trace prints them", async () => {
  const { id } = await server.client.chat.completions.create({
    model: "default",
    messages: [{ role: "user", content: "Hello." }],
    max_tokens: 4,
    ...withoutTools,
  });
  const run = async (...args: string[]): Promise<{ code: number | null; out: string }> => {
    let out = "";
    const code = await runCommandLine(["trace", ...args, "--url", server.url], {
      cwd: server.folder,
      env: {},
      out: (text) => (out += text),
      err: (text) => (out += text),
    });
    return { code, out };
  };
  const list = await run();
  expect(list.code).toBe(0);
  const { rows } = await traceOf(id);
  const line = list.out.trim().split("\n").at(-1)!.split(/ {2,}/);
  expect([line[0], line[1]]).toEqual([id, "length"]);
  expect(line.slice(3, 7)).toEqual(
    [rows.prompt, rows.cached, rows.prefilled, rows.generated].map(String),
  );
  const one = await run(id);
  expect(one.out).toContain(`${rows.prompt} prompt tokens, ${rows.cached} of them cached`);
  for (const phase of ["prepare", "queued", "prefill", "decode"])
    expect(one.out).toMatch(new RegExp(`^${phase} +[\\d.]+ ms `, "m"));
  expect(JSON.parse((await run(id, "--json")).out)).toEqual(await traceOf(id));
  const none = await run("resp_of_nobody");
  expect(none.code).not.toBe(0);
  expect(none.out).toContain('There is no trace of "resp_of_nobody".');
});
