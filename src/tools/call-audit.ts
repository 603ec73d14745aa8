/** A line of JSON for each call of a tool: who, what, how large, how it ended; never what was said. */

import { createHash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import type { ToolCall } from "../chat/types.ts";
import { FermataError } from "../errors.ts";
import type { ToolOutcome } from "./types.ts";

export interface AuditedCall {
  call: ToolCall;
  server: string;
  /** Hash of the API key that asked. */
  owner: string;
  outcome: ToolOutcome;
  /** What the model was given. */
  content: string;
  milliseconds: number;
}

export class CallAudit {
  readonly #file: number;
  readonly #onError: (error: unknown) => void;
  #isOpen = true;

  /** Appends; a new file is for its owner only. @throws FermataError invalid_option */
  constructor(path: string, onError: (error: unknown) => void) {
    try {
      this.#file = openSync(path, "a", 0o600);
    } catch (cause) {
      const message = `--audit-log: ${path} cannot be written: ${(cause as Error).message}.`;
      throw new FermataError("invalid_option", message, { param: "audit-log", cause });
    }
    this.#onError = onError;
  }

  /** Written before the model reads the result. Never throws: a full disk does not stop the service. */
  record({ call, server, owner, outcome, content, milliseconds }: AuditedCall): void {
    const line = {
      time: new Date().toISOString(),
      call_id: call.id,
      owner: owner.slice(0, 16),
      server,
      tool: call.name,
      arguments_bytes: Buffer.byteLength(call.arguments),
      arguments_sha256: sha256(call.arguments),
      result_bytes: Buffer.byteLength(content),
      result_sha256: sha256(content),
      milliseconds: Math.round(milliseconds),
      outcome,
    };
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch (error) {
      this.#onError(error);
    }
  }

  async close(): Promise<void> {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
