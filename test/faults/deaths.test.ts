// Processes that die or stand still amid work: what was acknowledged is there, and streams go on. Needs `npm run build`.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Conversation } from "../../src/client/types.ts";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times, told } from "./support/injections.ts";
import { endlessStream, post, workerOf } from "./support/served.ts";

let folder: string;
let server: ServedCommand | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-deaths-"));
});
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
  rmSync(folder, { recursive: true });
});

test.each(["worker", "supervisor"])(
  "the %s is killed amid stored responses: those that were answered are there",
  async (victim) => {
    const serve = () => serveCommand(`--store=${join(folder, "store.sqlite")}`);
    server = await serve();
    const acknowledged: string[] = [];
    const count = times(2, 12);
    let deaths = 0;
    for (let round = 0; round < count; round++) {
      let isOver = false;
      const clients = Array.from({ length: 3 }, async () => {
        while (!isOver) {
          const body = { input: "Hi", max_output_tokens: 2 };
          const reply = await post(server!, "/v1/responses", body).catch(() => null);
          if (reply?.status !== 200) continue;
          const text = await reply.text().catch(() => "");
          if (text.endsWith("}")) acknowledged.push((JSON.parse(text) as { id: string }).id);
        }
      });
      const before = acknowledged.length;
      await eventually(() => expect(acknowledged.length).toBeGreaterThan(before + 3));
      if (victim === "worker") process.kill(await workerOf(server, ++deaths), "SIGKILL");
      else await server.stop("SIGKILL");
      isOver = true;
      await Promise.all(clients);
      if (victim === "supervisor") server = await eventually(serve);
      else await workerOf(server, deaths + 1);
      await eventually(async () => expect((await fetch(`${server!.url}/ready`)).status).toBe(200));
    }
    for (const id of acknowledged) {
      const reply = await fetch(`${server.url}/v1/responses/${id}`);
      expect(await reply.json()).toMatchObject({ id });
    }
    told(`kills of the ${victim} amid stored responses`, count);
    told("acknowledged responses of these, all there", acknowledged.length);
  },
);

test.each(["worker", "supervisor"])(
  "the %s is killed while a call waits for a person: it is approved afterwards, and runs once",
  async (victim) => {
    const counted = join(folder, "calls");
    const counting = join(import.meta.dirname, "../fixtures/mcp/counting.mjs");
    const serve = () =>
      serveCommand(
        `--store=${join(folder, "store.sqlite")}`,
        "--cache-disk=256",
        `--cache-dir=${join(folder, "contexts")}`,
        `--mcp-command=${process.execPath}`,
        `--mcp-args=${counting},${counted}`,
      );
    const get = async <Body>(path: string): Promise<Body> =>
      (await (await fetch(server!.url + path)).json()) as Body;
    const waiting = (): Promise<string> =>
      eventually(async () => {
        type Approvals = { approvals: { call_id: string }[] };
        const { approvals } = await get<Approvals>("/api/approvals");
        expect(approvals).toHaveLength(1);
        return approvals[0]!.call_id;
      });
    server = await serve();
    const { id } = (await (await post(server, "/api/conversations", {})).json()) as { id: string };
    const run = { message: "What's the weather in Tokyo?", temperature: 0 };
    expect((await post(server, `/api/conversations/${id}/runs`, run)).status).toBe(202);
    const call = await waiting();
    const count = times(2, 10);
    for (let deaths = 1; deaths <= count; deaths++) {
      if (victim === "worker") {
        process.kill(await workerOf(server, deaths), "SIGKILL");
        await workerOf(server, deaths + 1);
      } else {
        await server.stop("SIGKILL");
        server = await eventually(serve);
      }
      expect(await waiting()).toBe(call);
    }
    expect(existsSync(counted)).toBe(false);
    expect((await post(server, `/api/approvals/${call}`, { decision: "approve" })).status).toBe(
      200,
    );
    await eventually(async () => {
      const { messages } = await get<Conversation>(`/api/conversations/${id}`);
      const { tool_calls: calls } = messages.at(-1)!;
      expect(calls[0]).toMatchObject({ call_id: call, tool_response: "Sunny, 21 degrees." });
    });
    expect(readFileSync(counted, "utf8").trim().split("\n")).toHaveLength(1);
    told(`kills of the ${victim} while a call waits for a person`, count);
  },
);

test("the supervisor stands still: streams go on, and who came meanwhile is served afterwards", async () => {
  server = await serveCommand("--store=none");
  const count = times(2, 15);
  for (let round = 0; round < count; round++) {
    const stream = await endlessStream(server);
    server.process.kill("SIGSTOP");
    const waiting = fetch(`${server.url}/health`);
    const length = stream.text().length;
    await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
    server.process.kill("SIGCONT");
    expect((await waiting).status).toBe(200);
    stream.leave();
  }
  expect(await workerOf(server, 1)).toBeGreaterThan(0);
  told("stops of the supervisor", count);
});
