import { spawn } from "node:child_process";
import { SetupError } from "../setup/report.mjs";

const running = new Set();
const keptLines = 40;

// However the bench ends, nothing it started goes on.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
]) {
  process.on(signal, () => process.exit(code));
}

/**
 * Starts a program that this process owns; `options` are those of `spawn`. `closed` resolves with { code, signal, stdout, tail },
 * where `tail` is the end of its stderr.
 */
export function startProcess(program, args, options) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let stdout = "";
  let tail = [];
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => {
    tail = [...tail, ...text.split("\n")].slice(-keptLines);
  });
  const closed = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal, stdout, tail: tail.join("\n") });
    });
  });
  return { child, closed };
}

/** Runs a program to its end and returns its stdout. */
export async function runProcess(program, args) {
  const { code, signal, stdout, tail } = await startProcess(program, args).closed;
  if (code === 0) return stdout;
  throw new SetupError(`${program} ${args.join(" ")}\nended with ${signal ?? code}:\n${tail}`);
}
