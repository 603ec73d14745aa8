// What a signal to `npm start` does to the programs of its setup, and those that run beside the steps of `npm test`.
import { spawn } from "node:child_process";
import { getPriority } from "node:os";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";

const run = new URL("../../scripts/setup/run.mjs", import.meta.url).href;
const { capture, inBackground } = (await import(run)) as {
  capture(program: string, args: string[]): Promise<{ output: string }>;
  inBackground<Result>(stop: AbortSignal, action: () => Result): Result;
};

// As cmake does: it keeps the signal from itself and waits for the compiler.
const builder = `
  process.on("SIGTERM", () => {});
  const compiler = require("node:child_process").spawn("sleep", ["60"]);
  compiler.on("exit", () => process.exit());
  console.log("compiler " + compiler.pid);
`;
const setup = `
  const { capture } = await import(${JSON.stringify(run)});
  const onLine = (line) => process.stdout.write(line + "\\n");
  await capture(process.execPath, ["-e", ${JSON.stringify(builder)}], { onLine })
    .catch((error) => process.stdout.write(error.message + "\\n"));
`;

test("a signal ends the compiler, although the program that runs it only waits", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", setup]);
  let said = "";
  for await (const text of child.stdout.setEncoding("utf8")) {
    if (said === "") child.kill("SIGTERM");
    said += text;
  }
  expect(said).toMatch(/^compiler \d+\nInterrupted\.\n$/);
  const pid = Number(/\d+/.exec(said)?.[0]);
  await eventually(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"));
});

test.runIf(getPriority() < 19)(
  "programs in the background yield to those that are not",
  async () => {
    // Its niceness is another a moment after its start.
    const told = `until [ "$(nice)" != ${getPriority()} ]; do :; done; nice`;
    const { signal } = new AbortController();
    const { output } = await inBackground(signal, () => capture("sh", ["-c", told]));
    expect(Number(output)).toBeGreaterThan(getPriority());
    expect((await capture("nice", [])).output).toBe(String(getPriority()));
  },
);

test("programs in the background end when they are not needed, and none begins any more", async () => {
  const stop = new AbortController();
  const start = (): Promise<unknown> =>
    inBackground(stop.signal, () => capture("sh", ["-c", "sleep 600 & wait"]));
  const running = start();
  stop.abort();
  await expect(running).rejects.toThrow("Interrupted.");
  await expect(start()).rejects.toThrow("Interrupted.");
});
