import { spawn } from "node:child_process";
import { SetupError } from "./report.mjs";

const endSignals = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Runs a program and resolves with { code, output }; its output is kept, not shown.
 * `onLine` sees each line; a line it returns true for is not kept.
 */
export function capture(program, args, { cwd, env, onLine } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: cmake does not pass a signal on to the compilers, it waits for their end.
      detached: true,
    });
    // By way of a failure, so that whoever waits can remove what is half done.
    let interrupted = false;
    const forward = (signal) => {
      interrupted = true;
      endGroup(child.pid, signal);
    };
    for (const signal of endSignals) process.once(signal, forward);

    const kept = [];
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      const take = (line) => {
        if (!onLine?.(line)) kept.push(line);
      };
      stream.setEncoding("utf8");
      stream.on("data", (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        lines.forEach(take);
      });
      stream.on("end", () => rest && take(rest));
    }
    const stopForwarding = () => {
      for (const signal of endSignals) process.off(signal, forward);
    };
    child.on("error", (error) => {
      stopForwarding();
      reject(error);
    });
    child.on("close", (code) => {
      stopForwarding();
      if (interrupted) reject(new SetupError("Interrupted."));
      else resolve({ code: code ?? 1, output: kept.join("\n") });
    });
  });
}

function endGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // It ended by itself in the meantime.
    if (error.code !== "ESRCH") throw error;
  }
}

/** Like capture, but a failure ends the setup with the last lines of the output. */
export async function runOrFail(what, program, args, options) {
  const { code, output } = await capture(program, args, options);
  if (code !== 0) {
    const tail = output.trimEnd().split("\n").slice(-80).join("\n");
    throw new SetupError(`${what} failed:\n${tail}`);
  }
  return output;
}

/** npm as the user runs it: the one that started this script (yarn and pnpm name themselves there), else the one on PATH. */
export function npmCommand(args) {
  const started = process.env.npm_execpath ?? "";
  const npm = /^(.*[\\/])np[mx]-cli\.js$/.exec(started);
  return npm ? [process.execPath, [`${npm[1]}npm-cli.js`, ...args]] : ["npm", args];
}
