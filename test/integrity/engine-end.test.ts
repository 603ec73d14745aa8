// The process or the worker ends while an engine is in any of its states: no crash, no hang.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const child = fileURLToPath(new URL("engine-end-child.mjs", import.meta.url));
const states = [
  "loading",
  "idle",
  "prefill",
  "decode",
  "guided",
  "held",
  "released",
  "closing",
  "tokenizing",
  "compiling",
];

function run(...args: string[]) {
  return new Promise<{ code: unknown; signal: unknown; stdout: string }>((resolve) => {
    execFile(process.execPath, [child, ...args], { timeout: 100_000 }, (error, stdout) => {
      resolve({ code: error?.code ?? 0, signal: error?.signal ?? null, stdout });
    });
  });
}

describe.each(states)("the process ends while an engine is %s", (state) => {
  it.each([
    ["exit", 7],
    ["throw", 1],
    ["return", 0],
  ])("by %s", async (ending, code) => {
    expect(await run(state, ending)).toEqual({ code, signal: null, stdout: "reached\n" });
  });
});

describe.each(states)("a worker ends while its engine is %s", (state) => {
  it.each([
    ["exit", 7],
    ["throw", 1],
    ["return", 0],
    ["terminate", 1],
  ])("by %s", async (ending, code) => {
    // The script's two tokens and the end token.
    const stdout = `reached\nworker ended with ${code}\ngenerated 3\n`;
    expect(await run(state, ending, "worker")).toEqual({ code: 0, signal: null, stdout });
  });
});
