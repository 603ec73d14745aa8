// An MCP server that breaks every rule, one that keeps them and one that is slow to start, in one host; and
// what each fault must come to. Over a fake model in test/contract, over the engine in test/e2e.
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { McpHost } from "../../src/mcp/host.ts";
import { eventually } from "./eventually.ts";

/** A tool that is silent for so long has timed out. */
export const silenceMs = 3000;

/** Silence that a tool which does answer never comes to, whatever else the machine does. */
export const patientMs = 60_000;

/** [fault, outcome, what the log says of it] */
export const faults: [string, "ok" | "error" | "timeout", RegExp?][] = [
  ["hang", "timeout"],
  ["late", "timeout"],
  ["exit", "error", /it exited with code 3/],
  ["killed", "error", /it was ended by SIGKILL/],
  ["orphan", "error", /it exited with code 0/],
  ["last_words", "error", /its last words: out of ␛\[31mpaper/],
  ["flood", "error", /lines \(\d+ MiB\) that answer nothing/],
  ["flood_messages", "error", /lines \(\d+ MiB\) that answer nothing/],
  ["huge", "error", /a line of 50 MiB was not read/],
  ["huge_id_last", "error", /a line of 50 MiB was not read/],
  ["large", "ok"],
  ["invalid_json", "timeout", /a line of \d+ characters is no message/],
  ["wrong_id", "timeout", /unknown message ID/],
  ["no_object", "error"],
  ["odd_content", "ok"],
  ["twice", "ok", /unknown message ID/],
  ["bytewise", "ok"],
  ["failure", "error"],
  ["progress", "ok"],
  ["changing", "ok"],
  ["deaf", "timeout", /it answers nothing any more/],
];

/** The servers, and the log of their host. */
export class FaultyServers {
  readonly host: McpHost;
  readonly #lines: { message: string; server?: string; [field: string]: unknown }[] = [];

  constructor() {
    const write = (fields: object, message: string): void =>
      void this.#lines.push({ ...fields, message });
    this.host = new McpHost(
      [
        server("bad", "misbehaving.mjs"),
        server("good", "server.mjs", "echo"),
        server("slow", "misbehaving.mjs", "2500"),
      ],
      {
        log: { debug: () => {}, info: write, warn: write },
        version: "0.0.0-test",
        toolTimeoutMs: patientMs + 1000,
        reconnectDelayMs: 50,
        brokenDelayMs: 300,
        pingTimeoutMs: 2000,
        startPatienceMs: 1500,
      },
    );
  }

  forgetLog(): void {
    this.#lines.length = 0;
  }

  /** The bad one is ready again, whatever came before, and the good one is there. */
  async recovered(): Promise<void> {
    await eventually(() => {
      const [bad, good] = this.host.servers();
      expect(good?.state).toBe("ready");
      expect(bad?.state).toBe("ready");
      expect(bad?.tools.length).toBeGreaterThan(10);
    });
  }

  async expectSlowStart(): Promise<void> {
    expect(this.#lines).toContainEqual({ server: "slow", message: "MCP server takes its time" });
    await eventually(() => expect(this.host.servers()[2]?.state).toBe("ready"));
  }

  /** The log tells of the bad one, if it should, of the good one nothing, and never at length. */
  async expectLog(said: RegExp | undefined): Promise<void> {
    if (said !== undefined) {
      await eventually(() => {
        const told = this.#lines
          .filter((line) => line.server === "bad")
          .map((line) => JSON.stringify(line));
        expect(told.join("\n").replaceAll('\\"', '"')).toMatch(said);
      });
    }
    expect(this.#lines.filter((line) => line.server === "good")).toEqual([]);
    // What the bad one's late, doubled and misdirected answers say is for the model alone.
    expect(JSON.stringify(this.#lines)).not.toMatch(/too late|for somebody else|jsonrpc/);
    // No flood of lines, whatever the server wrote.
    expect(this.#lines.length).toBeLessThan(40);
  }

  /** `die` is one answer whose call ends the bad server's process. */
  async expectOutOfOrder(die: (attempt: number) => Promise<void>): Promise<void> {
    await this.recovered();
    this.forgetLog();
    const withdrawn = (): boolean =>
      this.#lines.some(({ message }) => message === "MCP server out of order");
    for (let attempt = 0; attempt < 8 && !withdrawn(); attempt++) {
      await die(attempt);
      await eventually(() =>
        expect(withdrawn() || this.host.servers()[0]?.state === "ready").toBe(true),
      );
    }
    expect(withdrawn()).toBe(true);
  }
}

/** Counts by "tool outcome". @param metrics the text of /metrics */
export function toolOutcomes(metrics: string): Record<string, number> {
  const found = metrics.matchAll(
    /^fermata_tool_calls_total\{server="(\w+)",tool="(\w+)",outcome="(\w+)"\} (\d+)/gm,
  );
  return Object.fromEntries(
    [...found].map(([, , tool, outcome, count]) => [`${tool} ${outcome}`, Number(count)]),
  );
}

export function expectOneMore(
  key: string,
  before: Record<string, number>,
  after: Record<string, number>,
): void {
  expect(after[key], JSON.stringify(after)).toBe((before[key] ?? 0) + 1);
}

function server(id: string, file: string, ...args: string[]) {
  const path = fileURLToPath(new URL(`../fixtures/mcp/${file}`, import.meta.url));
  return { id, command: process.execPath, args: [path, ...args], env: {} };
}
