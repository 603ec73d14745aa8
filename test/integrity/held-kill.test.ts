// The server is killed at random moments while runs and sub-agents wait for approvals and run calls, and responses wait for
// their clients: every question and every held response that was seen is there afterwards, a decision or an output that was
// acknowledged counts, and no call that changes something runs a second time without a person's word, counted by the tools
// themselves. Needs `npm run build`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Conversation, RunStarted } from "../../src/client/types.ts";
import { eventually } from "../support/eventually.ts";
import { storeKinds } from "../support/store-worlds.ts";
import { killsOf, killStore } from "./support/kill-stores.ts";
import { kill, post, startServer } from "./support/killed-server.ts";

interface Asked {
  call_id: string;
  asking_id: string;
  may_have_run?: boolean;
}

interface Asking {
  id: string;
  output: { id: string; type: string; output?: string | null; error?: string | null }[];
}

const files = {
  type: "mcp",
  server_label: "files",
  require_approval: { always: { tool_names: ["send"] } },
};

/** The response that asks for consent to `send`. */
const ask = (url: string, name: string): Promise<Asking> =>
  post<Asking>(`${url}/v1/responses`, { input: `response ${name}`, tools: [files] });

/** The call that the client consents to, as it ended. */
async function consent(url: string, { id, output }: Asking): Promise<Asking["output"][number]> {
  const request = output.find(({ type }) => type === "mcp_approval_request")!.id;
  const input = [{ type: "mcp_approval_response", approval_request_id: request, approve: true }];
  const body = { previous_response_id: id, input, tools: [files] };
  const answer = await post<Asking>(`${url}/v1/responses`, body);
  return answer.output.find(({ type }) => type === "mcp_call")!;
}

interface Held {
  status: string;
  output: { type: string; call_id: string; status: string; content?: { text: string }[] }[];
}

/** The response that waits for what its client's function returns. */
const hold = async (url: string, name: string): Promise<string> => {
  const tools = [{ type: "function", name: "ask_client", parameters: { type: "object" } }];
  const fermata = { tools: "held" };
  const body = { input: `held ${name}`, background: true, tools, fermata };
  return (await post<{ id: string }>(`${url}/v1/responses`, body)).id;
};

const read = async (url: string, id: string): Promise<Held> =>
  (await (await fetch(`${url}/v1/responses/${id}`)).json()) as Held;

const isOpen = ({ status }: Held): boolean => status === "queued" || status === "in_progress";

const heldCall = (response: Held): string | undefined =>
  isOpen(response)
    ? response.output.find((item) => item.type === "function_call" && item.status === "in_progress")
        ?.call_id
    : undefined;

const deliver = (url: string, id: string, callId: string, output: string): Promise<unknown> =>
  post(`${url}/v1/responses/${id}/tool_outputs`, { tool_call_id: callId, output });

const waiting = async (url: string): Promise<Asked[]> =>
  ((await (await fetch(`${url}/api/approvals`)).json()) as { approvals: Asked[] }).approvals;

test.each(storeKinds)("%s", { timeout: 1_800_000 }, async (kind) => {
  const kills = killsOf(kind, 6);
  const folder = mkdtempSync(join(tmpdir(), "fermata-held-kill-"));
  const counted = join(folder, "calls");
  const { address } = await killStore(kind, folder);
  let state = 5;
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  let served = await startServer(address, counted);
  /** Conversations by the name of their run. */
  const runs = new Map<string, string>();
  const seen = new Set<string>();
  /** How often the server said that a decision is kept. */
  const approved = new Map<string, number>();
  /** Sent, but the server may have been killed before it said so. */
  const sent = new Map<string, number>();
  /** Responses that asked for consent, by their names. */
  const asking = new Map<string, Asking>();
  /** Held responses by their names, and what was sent to those whose call was seen. */
  const held = new Map<string, { id: string; isSeen: boolean; isKept: boolean }>();
  const add = (counts: Map<string, number>, id: string): unknown =>
    counts.set(id, (counts.get(id) ?? 0) + 1);
  const approve = async ({ call_id: id, asking_id: askingId }: Asked): Promise<void> => {
    add(sent, id);
    const decision = { decision: "approve", asking_id: askingId };
    await post(`${served.url}/api/approvals/${id}`, decision);
    add(approved, id);
  };
  try {
    for (let round = 0; round < kills; round++) {
      const { server, url } = served;
      let begun = (): void => {};
      const first = new Promise<void>((resolve) => (begun = resolve));
      // Sometimes before any question was seen.
      const isEarly = round % 3 === 2;
      const clients = Array.from({ length: 4 }, async (_, client) => {
        const name = `${round}-${client}`;
        const { id } = await post<Conversation>(`${url}/api/conversations`, {});
        // Half of the calls are made by a sub-agent.
        const model = client % 2 === 0 ? {} : { model: "boss" };
        await post<RunStarted>(`${url}/api/conversations/${id}/runs`, { message: name, ...model });
        runs.set(name, id);
        if (isEarly) begun();
        let own: Asked | undefined;
        while (own === undefined) {
          const asked = await waiting(url);
          for (const { call_id: callId } of asked) seen.add(callId);
          own = asked.find(({ call_id: callId }) => callId === `save_${name}`);
        }
        begun();
        await setTimeout(random() * 40);
        // One in four is left to the processes that follow.
        if (client > 0) await approve(own);
      });
      const responding = Array.from({ length: 2 }, async (_, client) => {
        const name = `${round}-${client}`;
        const response = await ask(url, name);
        asking.set(name, response);
        await setTimeout(random() * 40);
        // One in two is left to the last process.
        if (client > 0) await consent(url, response);
      });
      const holding = Array.from({ length: 2 }, async (_, client) => {
        const name = `${round}-${client}`;
        const response = { id: await hold(url, name), isSeen: false, isKept: false };
        held.set(name, response);
        let callId: string | undefined;
        while (callId === undefined) callId = heldCall(await read(url, response.id));
        response.isSeen = true;
        await setTimeout(random() * 40);
        // One in two is left to the last process.
        if (client > 0) {
          await deliver(url, response.id, callId, `early ${name}`);
          response.isKept = true;
        }
      });
      const gone = Promise.allSettled([...clients, ...responding, ...holding]);
      await Promise.race([first, gone]);
      await setTimeout(random() * 250);
      await kill(server);
      await gone;
      served = await startServer(address, counted);
      // What was seen and neither decided nor answered still waits.
      const open = [...seen].filter((id) => !sent.has(id));
      await eventually(async () => {
        const ids = (await waiting(served.url)).map(({ call_id: id }) => id);
        expect(ids).toEqual(expect.arrayContaining(open));
      });
    }
    const repeats = new Set<string>();
    const approveAll = async (): Promise<void> => {
      for (const asked of await waiting(served.url)) {
        if (asked.may_have_run === true) repeats.add(asked.call_id);
        await approve(asked);
      }
    };
    let consented = 0;
    for (const [name, response] of asking) {
      const { output, error } = await consent(served.url, response);
      if (output === `send of response ${name}: done`) consented += 1;
      else expect(error).toContain("may have taken effect");
    }
    let answered = 0;
    for (const [name, { id, isSeen, isKept }] of held) {
      const open = heldCall(await read(served.url, id));
      if (isKept) expect(open).toBeUndefined();
      if (open !== undefined) await deliver(served.url, id, open, `late ${name}`);
      const { status, output } = await eventually(async () => {
        const response = await read(served.url, id);
        expect(isOpen(response)).toBe(false);
        return response;
      });
      // The model had not come to its call, or its answer had begun.
      if (status !== "completed") {
        expect(isSeen && open !== undefined, `${name}: ${status}`).toBe(false);
        continue;
      }
      answered += 1;
      const said = output.find(({ type }) => type === "message")?.content?.[0]?.text;
      if (isKept) expect(said).toBe(`early ${name}`);
      else expect([`early ${name}`, `late ${name}`]).toContain(said);
    }
    const ends = new Map<string, number>();
    for (const [name, id] of runs) {
      const { status, message } = await eventually(async () => {
        // A run that goes on now may ask late.
        await approveAll();
        const reply = await fetch(`${served.url}/api/conversations/${id}`);
        const { messages } = (await reply.json()) as Conversation;
        const last = messages.at(-1)!;
        expect(last.status).not.toBe("running");
        return last;
      });
      add(ends, status);
      // Its answer had begun, or the model had not come to its calls.
      if (status !== "complete") continue;
      expect(message).toContain(`look of ${name}: done`);
      expect(message).toContain(`save of ${name}: done`);
    }
    const times = new Map<string, number>();
    for (const line of readFileSync(counted, "utf8").trim().split("\n")) add(times, line);
    for (const [call, count] of times) {
      const [tool, ...rest] = call.split(" ");
      const name = rest.join(" ");
      if (tool === "note" || tool === "send") expect([call, count]).toEqual([call, 1]);
      if (tool !== "save") continue;
      const decisions = sent.get(`save_${name}`) ?? 0;
      expect(count, call).toBeLessThanOrEqual(repeats.has(`save_${name}`) ? decisions : 1);
    }
    for (const [id] of approved) expect(times.has(id.replace("_", " ")), id).toBe(true);
    console.log(
      `${kind}: ${kills} kills, ${runs.size} runs (${[...ends].map(([status, count]) => `${count} ${status}`).join(", ")}), ` +
        `${seen.size} questions seen, ${repeats.size} asked again; ` +
        `${asking.size} responses asked, ${consented} of their calls ran to the end, none twice; ` +
        `${held.size} responses were held, ${answered} of them answered`,
    );
    expect(seen.size).toBeGreaterThan(kills / 2);
  } finally {
    served.server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});
