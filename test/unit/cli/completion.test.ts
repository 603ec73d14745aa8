import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commands } from "../../../src/cli/commands/commands.ts";
import { flagOf } from "../../../src/cli/options/option-table.ts";
import { runCommandLine } from "../../../src/cli/run.ts";

async function scriptFor(shell: string): Promise<string> {
  let out = "";
  const context = { cwd: "/", env: {}, out: (text: string) => (out += text), err: () => {} };
  expect(await runCommandLine(["completion", shell], context)).toBe(0);
  return out;
}

function bashCompletes(script: string, ...words: string[]): string[] {
  const path = join(mkdtempSync(join(tmpdir(), "fermata-")), "completion.bash");
  writeFileSync(path, script);
  const program = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fermata; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync("bash", ["-c", program, "bash", path, "fermata", ...words]);
  return String(out)
    .split("\n")
    .filter((line) => line !== "");
}

test("bash: commands, options, choices", async () => {
  const script = await scriptFor("bash");
  expect(bashCompletes(script, "")).toEqual([
    ...commands.map(({ name }) => name),
    "--help",
    "--version",
  ]);
  expect(bashCompletes(script, "serve", "--kv-l")).toEqual(["--kv-layout"]);
  expect(bashCompletes(script, "serve", "--kv-layout", "s")).toEqual(["streams"]);
  expect(bashCompletes(script, "serve", "--no-sup")).toEqual(["--no-supervise"]);
  expect(bashCompletes(script, "pull", "--kv")).toEqual([]);
  expect(bashCompletes(script, "completion", "f")).toContain("fish");
});

test.each(["zsh", "fish"])("%s: every option of every command", async (shell) => {
  const script = await scriptFor(shell);
  for (const { name, options } of commands) {
    expect(script).toContain(name);
    for (const key of Object.keys(options))
      expect(script).toContain(shell === "fish" ? `-l ${flagOf(key)}` : `*--${flagOf(key)}[`);
  }
});

test("a shell that it does not know", async () => {
  let err = "";
  const context = { cwd: "/", env: {}, out: () => {}, err: (text: string) => (err += text) };
  expect(await runCommandLine(["completion", "bsh"], context)).toBe(2);
  expect(err).toContain("Did you mean bash?");
});

test("every command's help has its options and examples, and fits a terminal", async () => {
  for (const { name, options } of commands) {
    let out = "";
    const context = { cwd: "/", env: {}, out: (text: string) => (out += text), err: () => {} };
    expect(await runCommandLine([name, "--help"], context)).toBe(0);
    expect(out).toContain(`fermata ${name}`);
    expect(out).toContain("Examples");
    for (const key of Object.keys(options)) expect(out).toContain(flagOf(key));
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
  }
});
