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

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

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

test.each([
  ["worker", "worker killed (SIGKILL) amid stored responses"],
  ["supervisor", "supervisor killed amid the same"],
])(
  "the %s is killed amid stored responses: those that were answered are there",
  async (victim, fault) => {
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
    told(fault, count);
    console.info(`acknowledged responses, all there: ${acknowledged.length}`);
  },
);

/** A server whose one tool writes a line into a file with each call. */
const serveCounting = (): Promise<ServedCommand> =>
  serveCommand(
    `--store=${join(folder, "store.sqlite")}`,
    "--cache-disk=256",
    `--cache-dir=${join(folder, "contexts")}`,
    `--mcp-command=${process.execPath}`,
    `--mcp-args=${join(import.meta.dirname, "../fixtures/mcp/counting.mjs")},${counted()}`,
  );
const counted = (): string => join(folder, "calls");
const timesRun = (): number =>
  existsSync(counted()) ? readFileSync(counted(), "utf8").trim().split("\n").length : 0;

const victims = ["worker is killed", "supervisor is killed", "server is stopped"];

/** @param count of the worker that serves */
async function die(victim: string, count: number): Promise<void> {
  if (victim === "worker is killed") {
    process.kill(await workerOf(server!, count), "SIGKILL");
    await workerOf(server!, count + 1);
  } else {
    await server!.stop(victim === "server is stopped" ? "SIGTERM" : "SIGKILL");
    server = await eventually(serveCounting);
  }
}

test.each(victims)(
  "the %s while a call waits for a person: it is approved afterwards, and runs once",
  async (victim) => {
    const get = async <Body>(path: string): Promise<Body> =>
      (await (await fetch(server!.url + path)).json()) as Body;
    const waiting = (): Promise<string> =>
      eventually(async () => {
        type Approvals = { approvals: { call_id: string }[] };
        const { approvals } = await get<Approvals>("/api/approvals");
        expect(approvals).toHaveLength(1);
        return approvals[0]!.call_id;
      });
    server = await serveCounting();
    const { id } = (await (await post(server, "/api/conversations", {})).json()) as { id: string };
    const run = { message: "What's the weather in Tokyo?", temperature: 0 };
    expect((await post(server, `/api/conversations/${id}/runs`, run)).status).toBe(202);
    const call = await waiting();
    const count = times(2, 10);
    for (let deaths = 1; deaths <= count; deaths++) {
      await die(victim, deaths);
      expect(await waiting()).toBe(call);
    }
    expect(timesRun()).toBe(0);
    expect((await post(server, `/api/approvals/${call}`, { decision: "approve" })).status).toBe(
      200,
    );
    await eventually(async () => {
      const { messages } = await get<Conversation>(`/api/conversations/${id}`);
      const { tool_calls: calls } = messages.at(-1)!;
      expect(calls[0]).toMatchObject({ call_id: call, tool_response: "Sunny, 21 degrees." });
    });
    expect(timesRun()).toBe(1);
    if (victim === victims[0]) told("worker killed (SIGKILL) while a call", count);
    else told("supervisor killed, or server stopped (SIGTERM), while", count, 2);
  },
);

test.each(victims)(
  "the %s after a response asked for approval: its client approves afterwards, and the call runs once",
  async (victim) => {
    server = await serveCounting();
    const tool = { type: "mcp", server_label: "mcp", require_approval: "always" };
    const fields = { tools: [tool], temperature: 0, max_output_tokens: 100 };
    const respond = async (body: object): Promise<Json> => {
      const reply = await post(server!, "/v1/responses", { ...fields, ...body });
      expect(reply.status).toBe(200);
      return await reply.json();
    };
    const first = await respond({ input: "What's the weather in Tokyo?" });
    const { id: request } = first.output.find(({ type }: Json) => type === "mcp_approval_request");
    const input = [{ type: "mcp_approval_response", approval_request_id: request, approve: true }];
    const count = times(2, 5);
    for (let deaths = 1; deaths <= count; deaths++) {
      await die(victim, deaths);
      // The second time the consent is repeated, as by a client that did not get the answer.
      const answer = await respond({ previous_response_id: first.id, input });
      expect(answer).toMatchObject({ status: "completed" });
      const call = answer.output.find(({ type }: Json) => type === "mcp_call");
      expect(call).toMatchObject({ output: "Sunny, 21 degrees.", approval_request_id: request });
      expect(timesRun()).toBe(1);
    }
    told("worker or supervisor killed, or server stopped, after", count, victims.length);
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
  told("supervisor stopped (SIGSTOP) amid a stream", count);
});
