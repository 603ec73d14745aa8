import { createServer } from "node:net";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCommandLine } from "../../../src/cli/run.ts";
import { flagOf } from "../../../src/cli/option-table.ts";
import { optionKeys } from "../../../src/cli/options.ts";
import { assertPortFree } from "../../../src/cli/port.ts";

async function run(...args: string[]) {
  let out = "";
  let err = "";
  const code = await runCommandLine(args, {
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
