// The engine's process dies in the middle of its work, as after a native abort: clients see a proper
// end, and the service is back on the same port.
import { once } from "node:events";
import { connect } from "node:net";
import OpenAI from "openai";
import { afterEach, expect, test, vi } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";

let server: ServedCommand | undefined;
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

const patience = { timeout: 30_000, interval: 20 };

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

/** Reads a stream to its end. */
function read(response: Response): { text: () => string; ended: Promise<void> } {
  let text = "";
  const ended = (async () => {
    for await (const piece of response.body!) text += new TextDecoder().decode(piece);
  })();
  ended.catch(() => {});
  return { text: () => text, ended };
}

const isHealthy = async (): Promise<void> =>
  expect((await fetch(`${server!.url}/health`)).status).toBe(200);

test.each(["SIGABRT", "SIGKILL"] as const)(
  "%s: streams end with an error event, waiting requests with 503, and the service is back",
  async (signal) => {
    server = await serveCommand("--parallel=1");
    const port = Number(new URL(server.url).port);
    const idle = connect(port, "127.0.0.1");
    await once(idle, "connect");
    const chat = read(await post("/v1/chat/completions", await endlessChat()));
    await vi.waitFor(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3), patience);
    // The only sequence is taken: these wait, one behind an open stream.
    const messages = read(await post("/v1/messages", { ...endless, stream: true }));
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const helper = openai.chat.completions.stream({ model: "default", ...endless });
    helper.on("error", () => {});
    const whole = post("/v1/messages", { ...endless, stream: false });
    await vi.waitFor(async () => {
      const metrics = await (await fetch(`${server!.url}/metrics`)).text();
      expect(metrics).toContain('fermata_sequences{state="waiting"} 3');
    }, patience);

    const closed = once(idle, "close");
    process.kill(workers()[0]!, signal);
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
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("x-request-id")).toMatch(/^req_/);
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "overloaded_error", code: "engine_crashed" },
    });

    await vi.waitFor(isHealthy, patience);
    expect(workers()).toHaveLength(2);
    const answer = await post("/v1/chat/completions", { ...endless, max_tokens: 4 });
    expect(answer.status).toBe(200);
    expect(await server.stop()).toBe(0);
    server = undefined;
  },
);

test("while no worker serves, a connection gets 503 at once", async () => {
  server = await serveCommand();
  const restart = once(server.process.stderr!, "data");
  process.kill(workers()[0]!, "SIGKILL");
  await restart;
  const response = await post("/v1/chat/completions", endless);
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await response.json()).toMatchObject({ error: { code: "engine_crashed" } });
  await vi.waitFor(isHealthy, patience);
});

test("SIGTERM in a stream: it drains, then ends with an error event, and both processes leave", async () => {
  server = await serveCommand("--drain-seconds=1");
  const [worker] = workers();
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await vi.waitFor(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3), patience);
  const left = server.stop("SIGTERM");
  await vi.waitFor(async () => {
    const response = await post("/v1/chat/completions", endless);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "engine_closed" } });
  }, patience);
  await chat.ended;
  expect(chat.text()).toContain('"code":"engine_closed"');
  expect(await left).toBe(0);
  expect(() => process.kill(worker!, 0)).toThrow("ESRCH");
  server = undefined;
});

test("the worker does not outlive a supervisor that is killed", async () => {
  server = await serveCommand();
  const [worker] = workers();
  await server.stop("SIGKILL");
  await vi.waitFor(() => expect(() => process.kill(worker!, 0)).toThrow("ESRCH"), patience);
});

test("--no-supervise: one process, the same manners", async () => {
  server = await serveCommand("--no-supervise", "--drain-seconds=0");
  expect(workers()).toEqual([]);
  const chat = read(await post("/v1/chat/completions", await endlessChat()));
  await vi.waitFor(() => expect(chat.text().split("data: ").length).toBeGreaterThan(3), patience);
  const left = server.stop("SIGINT");
  await chat.ended;
  expect(chat.text()).toContain('"code":"engine_closed"');
  expect(await left).toBe(0);
});

test("a worker that cannot start has said why, and its code is the command's", async () => {
  await expect(serveCommand("--model=/nowhere.gguf")).rejects.toThrow(
    /ended with 2\.\nfermata: [^\n]*nowhere\.gguf/,
  );
});
