// What a signal to `npm start` does to the programs of its setup.
import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";

const capture = new URL("../../scripts/setup/run.mjs", import.meta.url).href;

// As cmake does: it keeps the signal from itself and waits for the compiler.
const builder = `
  process.on("SIGTERM", () => {});
  const compiler = require("node:child_process").spawn("sleep", ["60"]);
  compiler.on("exit", () => process.exit());
  console.log("compiler " + compiler.pid);
`;
const setup = `
  const { capture } = await import(${JSON.stringify(capture)});
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
