// A request that kills the worker each time it comes, and clients whose SDK sends it again and again.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { hasMasks } from "../support/masks.ts";
import { times, told } from "./support/injections.ts";
import { post, workerOf } from "./support/served.ts";

let server: ServedCommand | undefined;
afterEach(async () => {
  delete process.env["NODE_OPTIONS"];
  await server?.stop("SIGKILL");
  server = undefined;
});

const fixture = pathToFileURL(join(import.meta.dirname, "../fixtures/poisonous-prompts.mjs")).href;
async function serve(store = "none"): Promise<ServedCommand> {
  process.env["NODE_OPTIONS"] = `--import=${fixture}`;
  server = await serveCommand(`--store=${store}`, "--parallel=4");
  return server;
}

interface Death {
  signal: string;
  in_flight: string[];
}
function deaths({ log }: ServedCommand): Death[] {
  return log()
    .split("\n")
    .filter((line) => line.includes("the worker ended abnormally"))
    .map((line) => JSON.parse(line) as Death);
}

/** Long enough to be in flight when the worker dies. */
const long = { max_tokens: 2000, ignore_eos: true, temperature: 2, top_k: 0, min_p: 0 };

test("it kills twice and is refused then, however often it comes; the log names it", async () => {
  const running = await serve();
  const openai = new OpenAI({ baseURL: `${running.url}/v1`, apiKey: "none", maxRetries: 200 });
  const count = times(1, 10);
  for (let round = 1; round <= count; round++) {
    const body = { model: "default", prompt: `poison ${round}`, ...long };
    const named = { headers: { "x-request-id": `poison-${round}` } };
    const error = await openai.completions.create(body, named).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OpenAI.UnprocessableEntityError);
    expect(error).toMatchObject({ code: "request_quarantined", param: "body" });
    expect(deaths(running)).toHaveLength(2 * round);
    for (const { signal, in_flight: ids } of deaths(running).slice(-2)) {
      expect(signal).toBe("SIGABRT");
      expect(ids).toEqual([`poison-${round}`]);
    }
    const same = await post(running, "/v1/completions", body);
    expect(same.status).toBe(422);
    expect(same.headers.get("retry-after")).toBe(null);
    // A change makes it another request.
    expect(
      (await post(running, "/v1/completions", { prompt: "Hello", max_tokens: 2 })).status,
    ).toBe(200);
  }
  told("a request that aborts the worker", count);
});

test("who was only beside it is answered in the end", async () => {
  const running = await serve();
  // What kills does so after 300 ms, while it is in flight on the fastest machine.
  const limits = { poison: long.max_tokens } as Record<string, number>;
  const send = (prompt: string) =>
    post(running, "/v1/completions", { prompt, ...long, max_tokens: limits[prompt] ?? 60 });
  const untilAnswered = async (prompt: string): Promise<number> => {
    for (;;) {
      const response = await send(prompt).catch(() => null);
      if (response !== null && response.status !== 503) return response.status;
    }
  };
  const statuses = await Promise.all(
    ["poison", "Once", "Twice", "Thrice"].map((prompt) => untilAnswered(prompt)),
  );
  expect(statuses).toEqual([422, 200, 200, 200]);
  expect(deaths(running)).toHaveLength(2);
  await workerOf(running, 3);
  await eventually(async () => expect((await send("Once")).status).toBe(200));
  told("the same amid three harmless requests", 1);
});

test("the refusal ends with Fermata", async () => {
  const body = { prompt: "poison", ...long };
  let running = await serve();
  for (const status of [503, 503, 422]) {
    await eventually(async () => expect((await fetch(`${running.url}/ready`)).status).toBe(200));
    expect((await post(running, "/v1/completions", body)).status).toBe(status);
  }
  expect(await running.stop("SIGTERM")).toBe(0);
  running = await serve();
  expect((await post(running, "/v1/completions", body)).status).toBe(503);
});

interface Answer {
  status: string;
  error: unknown;
}

/** Of `long`, as Responses names its limit. */
const { max_tokens: max_output_tokens, ...sampling } = long;

const runs: [string, (running: ServedCommand) => Promise<() => Promise<Answer>>][] = [
  [
    "background response",
    async (running) => {
      const body = { input: "poison", background: true, max_output_tokens, ...sampling };
      const { id } = await posted(running, "/v1/responses", body);
      return async () => await got<Answer>(running, `/v1/responses/${id}`);
    },
  ],
  [
    "run of a conversation",
    async (running) => {
      // A shorter text, once it repeats itself, is closed before what kills does.
      const schema = { type: "string", minLength: 10 * long.max_tokens };
      const response_format = { type: "json_schema", json_schema: { name: "long", schema } };
      const { id } = await posted(running, "/api/conversations", {});
      await posted(running, `/api/conversations/${id}/runs`, {
        message: "poison",
        response_format,
      });
      return async () => {
        const { messages } = await got<{ messages: Answer[] }>(running, `/api/conversations/${id}`);
        return messages.at(-1)!;
      };
    },
  ],
];

async function got<Body>(running: ServedCommand, path: string): Promise<Body> {
  return (await (await fetch(running.url + path)).json()) as Body;
}

/** Also where it comes while a worker starts. */
async function posted(running: ServedCommand, path: string, body: object): Promise<{ id: string }> {
  const reply = await eventually(async () => {
    const sent = await post(running, path, body);
    expect(sent.status).toBeLessThan(300);
    return sent;
  });
  return (await reply.json()) as { id: string };
}

// Without masks a conversation's run may end before it kills.
test.each(runs.slice(0, hasMasks ? 2 : 1))(
  "a %s that kills ends as failed after two deaths, and its body is not refused",
  async (_kind, start) => {
    const folder = mkdtempSync(join(tmpdir(), "fermata-poison-"));
    const running = await serve(join(folder, "store.sqlite"));
    for (let round = 1; round <= 2; round++) {
      const answer = await start(running);
      await eventually(async () => {
        expect(await answer()).toMatchObject({
          status: "failed",
          error: { message: expect.stringContaining("ended twice while it wrote this answer") },
        });
      });
      expect(deaths(running)).toHaveLength(2 * round);
    }
    await running.stop("SIGKILL");
    rmSync(folder, { recursive: true });
  },
);
