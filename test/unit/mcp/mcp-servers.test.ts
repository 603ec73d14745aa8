/** Several servers of one host, and how it starts and closes. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { parseMcpConfig } from "../../../src/mcp/config.ts";
import { StdioTransport } from "../../../src/mcp/transport/stdio-transport.ts";
import type { ToolReport } from "../../../src/tools/types.ts";
import {
  closeHosts,
  find,
  fixture,
  hosts,
  lines,
  names,
  never,
  server,
  start,
} from "./mcp-host-world.ts";

afterEach(closeHosts);

const echo = { command: process.execPath, args: [fixture, "echo"] };

describe("several servers", () => {
  test("prefixed names in the configuration's order, each call to its own", async () => {
    const host = await start([server("b", "process_id", "echo"), server("a", "process_id")]);
    expect(names(host)).toEqual(["b_echo", "b_process_id", "a_process_id"]);
    const first = await find(host, "b_process_id").call({}, never);
    const second = await find(host, "a_process_id").call({}, never);
    expect(first.content).not.toBe(second.content);
  });

  test("one that cannot start is logged and leaves the others alone", async () => {
    const missing = { id: "gone", command: "no-such-program-anywhere", args: [], env: {} };
    const host = await start([missing, server("ok", "echo")]);
    expect(names(host)).toEqual(["ok_echo"]);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: "warn",
        server: "gone",
        message: "MCP server not started, trying again later",
        reason: expect.stringContaining("no-such-program-anywhere"),
      }),
    );
  });

  test("the log has ten complaints a minute about a server, however much it does wrong", async () => {
    const args = [fixture.replace("server.mjs", "misbehaving.mjs")];
    const host = await start([{ id: "bad", command: process.execPath, args, env: {} }]);
    let minutes = 0;
    const real = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => real() + minutes * 60_000);
    const complaints = () => lines.filter(({ message }) => message === "MCP server misbehaves");
    const misbehave = async (times: number): Promise<void> => {
      for (let count = 0; count < times; count++) await find(host, "twice").call({}, never);
      // Its second answers have come before this one.
      await find(host, "echo").call({ message: "" }, never);
    };
    await misbehave(15);
    expect(complaints()).toHaveLength(10);
    minutes = 1.1;
    await misbehave(2);
    expect(complaints()).toHaveLength(12);
  });

  test("one that never answers is given up after a while", async () => {
    const host = await start([server("mute", "--silent")], { connectTimeoutMs: 200 });
    expect(names(host)).toEqual([]);
    expect(lines).toContainEqual(expect.objectContaining({ level: "warn", server: "mute" }));
  });

  test("one that ends at its start: its error is told, not the stack behind it", async () => {
    const host = await start([server("broken", "--broken")]);
    expect(host.servers()[0]!.error).toMatch(
      /it exited with code 1, its last words: .*no-such-module\.mjs' imported from/,
    );
  });

  test.each(["--silent", "--slow-list"])("one's own time to start (%s)", async (habit) => {
    const json = { command: process.execPath, args: [fixture, habit], startTimeoutSeconds: 0.5 };
    const servers = parseMcpConfig({ mcpServers: { lazy: json, ok: echo } }, "mcp.json");
    const host = await start(servers);
    expect(names(host)).toEqual(["ok_echo"]);
    expect(host.servers()[0]!.error).toMatch(
      /did not start: it did not answer within 0\.5 seconds\. .*"startTimeoutSeconds"/,
    );
  });

  test("a crash of one does not touch the other", async () => {
    const host = await start([server("a", "crash"), server("b", "slow")]);
    const slow = find(host, "b_slow").call({ milliseconds: 200 }, never);
    await find(host, "a_crash").call({}, never);
    expect(await slow).toEqual({ content: "done", isError: false });
  });
});

test("a server that must start fails the start", async () => {
  const missing = { id: "mcp", command: "no-such-program-anywhere", args: [], env: {} };
  await expect(start([missing], { mustStart: true })).rejects.toMatchObject({
    code: "mcp_start_failed",
    message: expect.stringContaining("no-such-program-anywhere"),
  });
});

test("close during a start that never ends", async () => {
  const starting = start([server("mute", "--silent")], { connectTimeoutMs: 20_000 });
  await new Promise((resolve) => setTimeout(resolve, 300));
  await hosts[0]!.close();
  await starting;
  expect(hosts[0]!.tools()).toEqual([]);
});

test("what is sent to one that is about to end fails with how it ended", async () => {
  const script = `require("node:fs").closeSync(1);
    process.stdin.on("end", () => { console.error("no database"); process.exit(4); }).resume();`;
  const transport = new StdioTransport({
    command: process.execPath,
    args: ["-e", script],
    env: {},
    maxMessageBytes: 1024 ** 2,
    onStandardError: () => {},
  });
  await transport.start();
  const sending = async (): Promise<never> => {
    for (;;) {
      await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
      // What it has not read yet must not reach the limit on a busy machine.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  await expect(sending()).rejects.toThrow("it exited with code 4, its last words: no database");
});

test("progress that is written together with the answer is heard, and nothing is said of it", async () => {
  const script = `require("node:readline").createInterface({ input: process.stdin })
    .on("line", (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      const results = {
        initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } },
        "tools/list": { tools: [{ name: "work", inputSchema: { type: "object" } }] },
      };
      const progressToken = params?._meta?.progressToken;
      const told = [1, 2].map((progress) => ({ method: "notifications/progress", params: { progressToken, progress, total: 2 } }));
      const answer = { id, result: results[method] ?? { content: [] } };
      const messages = method === "tools/call" ? [...told, answer] : [answer];
      process.stdout.write(messages.map((one) => JSON.stringify({ jsonrpc: "2.0", ...one }) + "\\n").join(""));
    })`;
  const host = await start([{ id: "a", command: process.execPath, args: ["-e", script], env: {} }]);
  const reports: ToolReport[] = [];
  await find(host, "work").call({}, { ...never, report: (report) => void reports.push(report) });
  expect(reports).toMatchObject([{ progress: 1 }, { progress: 2 }]);
  expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
});
