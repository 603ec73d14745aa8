// Conversations are kept in files: after a restart, however the process ended, their next turn computes
// what is new and says what an uninterrupted server says.
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { kinds } from "../support/kind-tensors.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { metric } from "../support/metric.ts";

let folder: string;
const servers: ServedCommand[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-context-files-"));
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

async function serve(...args: string[]): Promise<ServedCommand> {
  const server = await serveCommand("--store=none", "--parallel=2", ...args);
  servers.push(server);
  return server;
}

const withFiles = (...args: string[]): Promise<ServedCommand> =>
  serve("--cache-disk=256", `--cache-dir=${folder}`, ...args);

type Message = { role: "system" | "user" | "assistant"; content: string };
interface Answer {
  content: string;
  prompt: number;
  cached: number;
}

async function ask({ url }: ServedCommand, messages: Message[]): Promise<Answer> {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages, temperature: 0, max_tokens: 8 }),
  });
  expect(reply.status).toBe(200);
  const { choices, usage } = (await reply.json()) as {
    choices: [{ message: { content: string } }];
    usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  };
  return {
    content: choices[0].message.content,
    prompt: usage.prompt_tokens,
    cached: usage.prompt_tokens_details.cached_tokens,
  };
}

const begins = (name: string): Message[] => [
  { role: "system", content: `You help ${name}. ${`${name} likes short answers. `.repeat(10)}` },
  { role: "user", content: "Hello! Who are you?" },
];

const goesOn = (messages: Message[], { content }: Answer): Message[] => [
  ...messages,
  { role: "assistant", content },
  { role: "user", content: "And what can you do for me?" },
];

/** What the second turns of these conversations are on a server that nothing interrupts. */
async function uninterrupted(names: string[]): Promise<Answer[]> {
  const server = await serve();
  const answers: Answer[] = [];
  for (const name of names) answers.push(await ask(server, begins(name)));
  const second: Answer[] = [];
  for (const [index, name] of names.entries())
    second.push(await ask(server, goesOn(begins(name), answers[index]!)));
  return second;
}

async function expectGoesOn(server: ServedCommand, names: string[], first: Answer[]) {
  const expected = await uninterrupted(names);
  for (const [index, name] of names.entries()) {
    const answer = await ask(server, goesOn(begins(name), first[index]!));
    expect(answer.content).toBe(expected[index]!.content);
    // What was computed in the first turn is not computed again; the answer comes back as text.
    expect(answer.cached).toBeGreaterThanOrEqual(first[index]!.prompt - 1);
  }
  expect(await metric(server, "fermata_disk_restores_total")).toBe(names.length);
}

async function firstTurns(server: ServedCommand, names: string[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const name of names) answers.push(await ask(server, begins(name)));
  return answers;
}

async function files(): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith(".kv")).map((name) => join(folder, name));
}

test("SIGTERM: what was in slots and in memory is there after the restart", async () => {
  // Three slots: one of the four has left for memory.
  const names = ["Ada", "Bob", "Cleo", "Dan"];
  const before = await withFiles("--retained-slots=1");
  const first = await firstTurns(before, names);
  expect(await metric(before, "fermata_ram_saves_total")).toBeGreaterThan(0);
  expect(await before.stop()).toBe(0);
  expect(await files()).toHaveLength(names.length);
  for (const path of await files()) expect((await stat(path)).mode & 0o777).toBe(0o600);
  await expectGoesOn(await withFiles("--retained-slots=1"), names, first);
});

test.each(["server", "worker"] as const)(
  "kill -9 of the %s: what was written is there",
  async (who) => {
    const names = ["Ada", "Bob"];
    let server = await withFiles();
    const first = await firstTurns(server, names);
    await eventually(async () =>
      expect(await metric(server, "fermata_disk_saves_total")).toBe(names.length),
    );
    const worker = Number(/"pid":(\d+)[^\n]*worker ready/.exec(server.log())![1]);
    if (who === "server") {
      await server.stop("SIGKILL");
      server = await withFiles();
    } else {
      process.kill(worker, "SIGKILL");
      await eventually(async () => {
        expect(server.log().match(/worker ready/g)).toHaveLength(2);
        expect((await fetch(`${server.url}/health`)).status).toBe(200);
      });
    }
    await expectGoesOn(server, names, first);
  },
);

test.each(kinds)(
  "a %s model, which cannot be cut anywhere, goes on from a mark after the restart",
  async (kind) => {
    const model = `--model=${writeRandomKind(kind)}`;
    const before = await withFiles(model);
    const first = await ask(before, begins("Ada"));
    await before.stop();
    const after = await withFiles(model);
    // The client changed the last answer.
    const second = await ask(after, goesOn(begins("Ada"), { ...first, content: "I am Fermata." }));
    const fresh = await ask(
      await serve(model),
      goesOn(begins("Ada"), { ...first, content: "I am Fermata." }),
    );
    expect(second.content).toBe(fresh.content);
    expect(second.prompt).toBe(fresh.prompt);
    expect(second.cached).toBeGreaterThanOrEqual(first.prompt - 16);
    expect(await metric(after, "fermata_fork_uses_total")).toBeGreaterThan(0);
  },
);

test("files that were changed are dropped and counted, and the answer is the same", async () => {
  const names = ["Ada", "Bob"];
  const before = await withFiles();
  const first = await firstTurns(before, names);
  await before.stop();
  const [head, cells] = await files();
  for (const [path, at] of [
    [head!, 70],
    [cells!, (await stat(cells!)).size - 9],
  ] as const) {
    const bytes = await readFile(path);
    bytes[at]! ^= 1;
    await writeFile(path, bytes);
  }
  const after = await withFiles();
  const expected = await uninterrupted(names);
  for (const [index, name] of names.entries()) {
    const answer = await ask(after, goesOn(begins(name), first[index]!));
    expect(answer.content).toBe(expected[index]!.content);
  }
  expect(await metric(after, 'fermata_disk_drops_total{reason="damaged"}')).toBe(2);
});

test("files of a server with other options are dropped and counted", async () => {
  const before = await withFiles();
  await firstTurns(before, ["Ada"]);
  await before.stop();
  const after = await withFiles("--cache-type-k=q8_0");
  expect((await ask(after, begins("Ada"))).cached).toBe(0);
  expect(await metric(after, 'fermata_disk_drops_total{reason="foreign"}')).toBe(1);
});

test("a folder that cannot be used is logged once, and nothing fails for it", async () => {
  await writeFile(join(folder, "file"), "");
  const server = await serve("--cache-disk=256", `--cache-dir=${join(folder, "file")}`);
  await eventually(() =>
    expect(server.log()).toMatch(
      /"fault":"[^"]*\/file[^"]*","msg":"the context cache does not reach/,
    ),
  );
  const first = await firstTurns(server, ["Ada", "Bob"]);
  const again = await ask(server, goesOn(begins("Ada"), first[0]!));
  expect(again.cached).toBeGreaterThanOrEqual(first[0]!.prompt - 1);
  expect(server.log().match(/does not reach its files/g)).toHaveLength(1);
  expect(await server.stop()).toBe(0);
});

test("kill -9 while a response waits for a call's output: it is answered after the restart, from the file", async () => {
  const kept = `--store=${join(folder, "store.sqlite")}`;
  const send = async ({ url }: ServedCommand, path: string, body?: object) => {
    const reply = await fetch(url + path, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers: { "content-type": "application/json" },
    });
    expect(reply.status).toBe(200);
    return (await reply.json()) as {
      id: string;
      status: string;
      output: { type: string; call_id: string; status: string }[];
    };
  };
  const before = await withFiles(kept);
  const { id } = await send(before, "/v1/responses", {
    input: "What's the weather in Tokyo?",
    instructions: "You help. ".repeat(40),
    tools: [
      {
        type: "function",
        name: "get_weather",
        description: "Get the weather of a place",
        parameters: { type: "object", properties: { location: { type: "string" } } },
      },
    ],
    tool_choice: "required",
    parallel_tool_calls: false,
    temperature: 0,
    max_output_tokens: 200,
    background: true,
    fermata: { tools: "held" },
  });
  await eventually(async () =>
    expect(await metric(before, "fermata_disk_saves_total")).toBeGreaterThan(0),
  );
  const [call] = (await send(before, `/v1/responses/${id}`)).output.filter(
    ({ type }) => type === "function_call",
  );
  await before.stop("SIGKILL");

  const after = await withFiles(kept);
  await send(after, `/v1/responses/${id}/tool_outputs`, {
    tool_call_id: call!.call_id,
    output: "Sunny, 21 degrees.",
  });
  const response = await eventually(async () => {
    const now = await send(after, `/v1/responses/${id}`);
    const waits = now.output.filter(
      ({ type, status }) => type === "function_call" && status === "in_progress",
    );
    expect(now.status === "completed" || waits.length > 0).toBe(true);
    return now;
  });
  expect(response.output.find(({ call_id: callId }) => callId === call!.call_id)).toMatchObject({
    status: "completed",
  });
  expect(await metric(after, "fermata_disk_restores_total")).toBe(1);
  expect(await metric(after, "fermata_recomputed_tokens_total")).toBe(0);
});
