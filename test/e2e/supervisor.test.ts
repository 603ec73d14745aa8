// The engine's process dies in the middle of its work, as after a native abort: clients see a proper
// end, and the service is back on the same port.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { modelPath } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { hasPython, openTerminal } from "../support/terminal.ts";

let folder: string;
let server: ServedCommand | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-supervisor-"));
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
});

/** Long enough to be met in the middle of it. */
const endless = {
  messages: [{ role: "user" as const, content: "Hello!" }],
  max_tokens: 8000,
  temperature: 2,
  top_k: 0,
  top_p: 1,
  min_p: 0,
};
/** Over chat completions, where the model can be kept from ending by itself. */
async function endlessChat() {
  const reply = await post("/tokenize", { content: "<|im_end|><|endoftext|>" });
  const { tokens } = (await reply.json()) as { tokens: number[] };
  const logit_bias = Object.fromEntries(tokens.map((token) => [token, -100]));
  return { ...endless, logit_bias, stream: true };
}

function post(path: string, body: object): Promise<Response> {
  return fetch(server!.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function workers(): number[] {
  return [...server!.log().matchAll(/"pid":(\d+)[^\n]*worker ready/g)].map(([, pid]) =>
    Number(pid),
  );
}

/** Reads a stream to its end, or until `leave`. */
function read(response: Response) {
  let text = "";
  const left = new AbortController();
  const body = response.body!.pipeThrough(new TextDecoderStream(), { signal: left.signal });
  const ended = (async () => {
    for await (const piece of body) text += piece;
  })();
  ended.catch(() => {});
  return { text: () => text, ended, leave: () => left.abort() };
}

/** The process id of the worker that is the `count`th: its line in the log may come after what it serves. */
async function workerOf(count: number): Promise<number> {
  await eventually(() => expect(workers()).toHaveLength(count));
  return workers()[count - 1]!;
}

const isHealthy = async (): Promise<void> =>
  expect((await fetch(`${server!.url}/health`)).status).toBe(200);

test.runIf(process.platform === "linux")(
  "glibc gives freed memory back in the worker, unless the environment says otherwise",
  async () => {
    vi.stubEnv("MALLOC_TRIM_THRESHOLD_", "1000000");
    server = await serveCommand();
    vi.unstubAllEnvs();
    const environment = readFileSync(`/proc/${await workerOf(1)}/environ`, "utf8").split("\0");
    expect(environment).toContain("MALLOC_MMAP_THRESHOLD_=131072");
    expect(environment).toContain("MALLOC_TRIM_THRESHOLD_=1000000");
  },
);

test.each(["SIGABRT", "SIGKILL"] as const)(
  "%s: streams end with an error event, waiting requests with 503, and the service is back",
  async (signal) => {
    server = await serveCommand("--parallel=1");
    const port = Number(new URL(server.url).port);
    const idle = connect(port, "127.0.0.1");
    await once(idle, "connect");
    const chat = read(await post("/v1/chat/completions", await endlessChat()));
    await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
    // The only sequence is taken: these wait, one behind an open stream.
    const messages = read(await post("/v1/messages", { ...endless, stream: true }));
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const helper = openai.chat.completions.stream({ model: "default", ...endless });
    helper.on("error", () => {});
    const whole = post("/v1/messages", { ...endless, stream: false });
    await eventually(async () => {
      const metrics = await (await fetch(`${server!.url}/metrics`)).text();
      expect(metrics).toContain('fermata_sequences{state="waiting"} 3');
    });

    const closed = once(idle, "close");
    process.kill(await workerOf(1), signal);
    await Promise.all([chat.ended, messages.ended, closed]);
    for (const text of [chat.text(), messages.text()]) {
      const last = text.trimEnd().split("\n\n").at(-1)!;
      expect(last).toMatch(/^event: error\ndata: /);
      expect(JSON.parse(last.split("data: ")[1]!)).toMatchObject({
        type: "error",
        error: { code: "engine_crashed", type: "server_error" },
      });
    }
    await expect(helper.finalChatCompletion()).rejects.toThrow(/ended abnormally/);
    const refused = await whole;
    expect(refused.status).toBe(503);
    // It may be to blame: it is not asked to come back.
    expect(refused.headers.get("retry-after")).toBe(null);
    expect(refused.headers.get("x-request-id")).toMatch(/^req_/);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "overloaded_error", code: "engine_crashed" },
    });

    await eventually(isHealthy);
    await workerOf(2);
    const answer = await post("/v1/chat/completions", { ...endless, max_tokens: 4 });
    expect(answer.status).toBe(200);
    expect(await server.stop()).toBe(0);
    server = undefined;
  },
);

test("while no worker serves, a connection gets 503 at once", async () => {
  // A worker that finds no model does not start: nothing serves until it is there again.
  const model = join(folder, basename(modelPath));
  await copyFile(modelPath, model);
  server = await serveCommand(`--model=${model}`);
  const worker = await workerOf(1);
  await rm(model);
  process.kill(worker, "SIGKILL");
  await eventually(() => expect(server!.log()).toContain("the worker does not start"));
  const response = await post("/v1/chat/completions", endless);
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await response.json()).toMatchObject({ error: { code: "engine_crashed" } });
  await copyFile(modelPath, model);
  await eventually(isHealthy);
});

test("SIGTERM in a stream: new requests get 503, and when the client leaves both processes leave", async () => {
  server = await serveCommand("--process-timeout=drain=600");
  const worker = await workerOf(1);
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
  const left = server.stop("SIGTERM");
  await eventually(async () => {
    const response = await post("/v1/chat/completions", { ...endless, max_tokens: 1 });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "engine_closed" } });
  });
  expect(chat.text()).not.toContain("engine_closed");
  chat.leave();
  expect(await left).toBe(0);
  expect(() => process.kill(worker, 0)).toThrow("ESRCH");
  server = undefined;
});

test("SIGTERM in a stream that does not end in time: it ends with an error event", async () => {
  server = await serveCommand("--process-timeout=drain=1");
  const worker = await workerOf(1);
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
  const left = server.stop("SIGTERM");
  await chat.ended;
  expect(chat.text()).toContain('"code":"engine_closed"');
  expect(await left).toBe(0);
  expect(() => process.kill(worker, 0)).toThrow("ESRCH");
  server = undefined;
});

test.skipIf(!hasPython).each(["--supervise", "--no-supervise"])(
  "a terminal that is closed (SIGHUP) ends the server as SIGTERM does: %s",
  async (supervise) => {
    const options = ["--port=0", "--store=none", "--process-timeout=drain=1", supervise];
    const terminal = openTerminal(["serve", ...options]);
    const [, url] = /(http\S+)\/v1/.exec(await terminal.expect(/Serving +\S+\/v1/))!;
    const body = JSON.stringify({ ...endless, stream: true, ignore_eos: true });
    const headers = { "content-type": "application/json" };
    const chat = read(await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body }));
    await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
    terminal.close();
    await chat.ended;
    expect(chat.text()).toContain('"code":"engine_closed"');
    // By the signal, as a shell tells it.
    expect(await terminal.exitCode).toBe(129);
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  },
);

test("the worker does not outlive a supervisor that is killed", async () => {
  server = await serveCommand();
  const worker = await workerOf(1);
  await server.stop("SIGKILL");
  await eventually(() => expect(() => process.kill(worker, 0)).toThrow("ESRCH"));
});

test("--no-supervise: one process, the same manners", async () => {
  server = await serveCommand("--no-supervise", "--process-timeout=drain=0");
  expect(workers()).toEqual([]);
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
  const left = server.stop("SIGINT");
  await chat.ended;
  expect(chat.text()).toContain('"code":"engine_closed"');
  expect(await left).toBe(0);
  expect(server.log()).toContain("SIGINT: closing. Once more leaves at once.");
});

test("Ctrl-C below npm comes twice, and answers still have their time; half a second later a second one ends it", async () => {
  server = await serveCommand("--process-timeout=drain=60");
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await eventually(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3));
  server.process.kill("SIGINT");
  await sleep(50);
  server.process.kill("SIGINT");
  await sleep(1000);
  expect(server.process.exitCode).toBeNull();
  expect(server.log()).toContain(
    "SIGINT: closing. Answers that run have 60 s to end. Once more leaves at once.",
  );
  const { length } = chat.text();
  await eventually(() => expect(chat.text().length).toBeGreaterThan(length));
  expect(await server.stop("SIGINT")).toBe(1);
  await expect(chat.ended).rejects.toThrow();
});

test("a worker that cannot start has said why, and its code is the command's", async () => {
  await expect(serveCommand("--model=/nowhere.gguf")).rejects.toThrow(
    /ended with 2\.\nfermata: [^\n]*nowhere\.gguf/,
  );
});
