/** What a failure of a command says, and its exit code. */

import { FermataError } from "../errors.ts";

/** The user can put it right. */
const usageExitCode = 2;
/** As shells have it for SIGINT. */
const interruptedExitCode = 130;
/** The fault is ours. */
const crashExitCode = 1;

/** How a worker ended before it served. One that left by itself has said why. */
export class WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;

  constructor(code: number | null, signal: NodeJS.Signals | null) {
    this.code = code;
    this.signal = signal;
  }
}

/** What a command that fails says, and the code it leaves with. */
export function describeFailure(error: unknown): { text: string; exitCode: number } {
  if (error instanceof FermataError && error.code !== "internal_error") {
    return {
      text: `fermata: ${error.message.replaceAll(/\s*\n\s*/g, " ")}\n`,
      exitCode: usageExitCode,
    };
  }
  if (error instanceof Error && error.name === "AbortError")
    return { text: "", exitCode: interruptedExitCode };
  if (error instanceof WorkerExit) {
    const { code, signal } = error;
    const text = `fermata: the engine's process was ended by ${signal} while it started.\n`;
    return { text: signal === null ? "" : text, exitCode: code || crashExitCode };
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { text: `fermata: ${text}\n`, exitCode: crashExitCode };
}
