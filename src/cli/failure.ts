/** What a failure of a command says, and its exit code. */

import { FermataError } from "../errors.ts";

export const exitCodes = {
  /** What was asked for did not come about, or the fault is ours. */
  failed: 1,
  /** The user can put it right. */
  usage: 2,
  /** As shells have it for SIGINT. */
  interrupted: 130,
};

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
      exitCode: exitCodes.usage,
    };
  }
  if (error instanceof Error && error.name === "AbortError")
    return { text: "", exitCode: exitCodes.interrupted };
  if (error instanceof WorkerExit) {
    const { code, signal } = error;
    const text = `fermata: the engine's process was ended by ${signal} while it started.\n`;
    return { text: signal === null ? "" : text, exitCode: code || exitCodes.failed };
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { text: `fermata: ${text}\n`, exitCode: exitCodes.failed };
}
