import { createServer } from "node:net";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { answerBeforeBuild, runCommandLine } from "../../../src/cli/run.ts";
import { flagOf } from "../../../src/cli/options/option-table.ts";
import { chatOptions, doctorOptions } from "../../../src/cli/commands/commands.ts";
import { optionKeys, serveOptions } from "../../../src/cli/options/serve-options.ts";
import { assertPortFree } from "../../../src/cli/port.ts";

const run = (...args: string[]) => told(runCommandLine, args);

async function told(action: typeof runCommandLine, args: string[]) {
  let out = "";
  let err = "";
  const code = await action(args, {
    cwd: mkdtempSync(join(tmpdir(), "fermata-")),
    env: {},
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

test("help names every option, and fits a terminal", async () => {
  const { code, out } = await run("serve", "--help");
  expect(code).toBe(0);
  for (const key of optionKeys) expect(out).toContain(flagOf(key));
  for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
  expect((await run()).out).toContain("fermata serve");
});

test("version", async () => {
  expect((await run("--version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe("mistakes: exit code 2, one line, no stack", () => {
  test.each([
    [["serv"], "Unknown command serv. Did you mean serve?"],
    [["run", "llama3"], "Unknown command run. Did you mean chat?"],
    [["ls"], "Unknown command ls. Did you mean list?"],
    [["--port", "1"], "Options come after the command"],
    [["serve", "--prot", "1"], "Did you mean --port?"],
  ])("%j", async (args, message) => {
    const { code, out, err } = await run(...args);
    expect(code).toBe(2);
    expect(out).toBe("");
    expect(err).toMatch(/^fermata: [^\n]+\n$/);
    expect(err).toContain(message);
  });
});

describe("before there is an engine", () => {
  const early = (...args: string[]) => told(answerBeforeBuild, args);

  test("help is the same", async () => {
    expect(await early("serve", "--help")).toEqual(await run("serve", "--help"));
    expect(await early("--version")).toEqual(await run("--version"));
  });

  test.each([
    [["serv"], "Did you mean serve?"],
    [["serve", "--prot", "1"], "Did you mean --port?"],
    [["serve", "--port", "0", "--model", "none.gguf"], "none.gguf does not exist"],
    [["serve", "--port", "0", "--mcp-config", "none.json"], "none.json does not exist"],
    [["serve", "--port", "0", "--mcp-args", "a"], "--mcp-args needs --mcp-command"],
    [["chat", "--aprove", "all"], "Did you mean --approve?"],
  ])("%j is a mistake already", async (args, message) => {
    const { code, out, err } = await early(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^fermata: [^\n]+\n$/);
    expect(err).toContain(message);
  });

  test("a port in use is found, too", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    expect((await early("serve", "--port", String(port))).err).toContain(`Port ${port}`);
    await new Promise((resolve) => other.close(resolve));
  });

  test("a command that can run is left to run", async () => {
    expect(await early("serve", "--port", "0")).toEqual({ code: null, out: "", err: "" });
    const config = join(mkdtempSync(join(tmpdir(), "fermata-")), "mcp.json");
    writeFileSync(config, '{"mcpServers": {"files": {"command": "absent"}}}');
    expect((await early("serve", "--port", "0", "--mcp-config", config)).code).toBeNull();
    expect((await early("doctor")).code).toBeNull();
  });
});

test("help has the parts of an option, with their defaults", async () => {
  const { out } = await run("serve", "--help");
  const text = out.replaceAll(/\s+/g, " ");
  expect(text).toContain("silence=60: of one call without an answer or progress.");
  expect(text).toContain("days=30: since the last change.");
});

test("help of --share-cache says what keys can learn of each other", async () => {
  const { out } = await run("serve", "--help");
  expect(out.replace(/\s+/g, " ")).toMatch(/--share-cache .{0,200}can tell/);
});

test("help tells how a switch that is on is turned off", async () => {
  const { out } = await run("serve", "--help");
  expect(out).toContain("--[no-]ui-server ");
  expect(out).toContain("--allow-request-mcp ");
});

test("a port in use is found before the model is loaded", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as { port: number };
  await expect(assertPortFree(port, "127.0.0.1")).rejects.toMatchObject({
    code: "port_in_use",
    message: expect.stringContaining(`Port ${port}`),
  });
  await new Promise((resolve) => other.close(resolve));
  await expect(assertPortFree(port, "127.0.0.1")).resolves.toBeUndefined();
});

test("no option of chat or doctor hides one of serve", () => {
  const own = [...Object.keys(chatOptions), ...Object.keys(doctorOptions)];
  expect(own.filter((key) => key in serveOptions)).toEqual([]);
});
