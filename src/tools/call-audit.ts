/**
 * Lines of JSON about the calls of tools: one before a call runs, one when it ended. They say who, what, how
 * large and how it ended, never what was said. A line is on the disk when its promise resolves.
 */

import { createHash } from "node:crypto";
import { close, closeSync, fdatasync, openSync, write } from "node:fs";
import { promisify } from "node:util";
import type { ToolCall } from "../chat/types.ts";
import { invalidOption } from "../errors.ts";
import type { ToolOutcome } from "./types.ts";

export interface AuditedCall {
  call: ToolCall;
  server: string;
  /** Hash of the API key that asked. */
  owner: string;
  /** Hash of the API key of the person who approved it; null: nobody was asked, or nobody approved. */
  approvedBy: string | null;
}

export interface AuditedEnd {
  outcome: ToolOutcome;
  /** What the model was given. */
  content: string;
  milliseconds: number;
}

const writeTo = promisify(write) as (
  file: number,
  data: Buffer,
) => Promise<{ bytesWritten: number }>;
const syncData = promisify(fdatasync);
const closeFile = promisify(close);
const newline = Buffer.from("\n");
const ownerLength = 16;

export class CallAudit {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #file: number;
  /** Lines that could not be written. */
  lostLines = 0;
  #waiting: { line: Buffer; done: () => void }[] = [];
  #writing: Promise<void> | null = null;
  #mustReopen = false;
  /** The file may end in the middle of a line. */
  #isTorn = false;
  #isOpen = true;

  /** Appends; a new file is for its owner only. @throws FermataError invalid_option */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
    try {
      this.#file = openForAppend(path);
    } catch (cause) {
      const message = `--audit-log: ${path} cannot be written: ${(cause as Error).message}.`;
      throw invalidOption(message, "audit-log", cause);
    }
  }

  /** The call runs once this has resolved. Never rejects: a full disk does not stop the service. */
  started(entry: AuditedCall): Promise<void> {
    return this.#append({ event: "start", ...describe(entry) });
  }

  /** The model reads the result once this has resolved. Never rejects. */
  ended(entry: AuditedCall, { outcome, content, milliseconds }: AuditedEnd): Promise<void> {
    return this.#append({
      event: "end",
      ...describe(entry),
      result_bytes: Buffer.byteLength(content),
      result_sha256: sha256(content),
      milliseconds: Math.round(milliseconds),
      outcome,
    });
  }

  /** Opens the file of this name again, after it was renamed. Lines that wait go to the new one. */
  async reopen(): Promise<void> {
    this.#mustReopen = true;
    await this.#write();
  }

  /** Waits for lines that are being written. Idempotent. */
  async close(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }

  #append(entry: object): Promise<void> {
    const line = Buffer.from(`${JSON.stringify(entry)}\n`);
    return new Promise((done) => {
      this.#waiting.push({ line, done });
      void this.#write();
    });
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeWaiting().finally(() => {
      this.#writing = null;
      // A line that came when the last one was done found nobody writing any more.
      if (this.#isOpen && this.#waiting.length > 0) void this.#write();
    });
    return this.#writing;
  }

  /** All that came while the disk was busy is written, and synced, together. */
  async #writeWaiting(): Promise<void> {
    while (this.#isOpen && (this.#mustReopen || this.#waiting.length > 0)) {
      if (this.#mustReopen) await this.#openAgain();
      const batch = this.#waiting.splice(0);
      try {
        await this.#writeAll(Buffer.concat(batch.map(({ line }) => line)));
      } catch (error) {
        this.lostLines += batch.length;
        this.#onError(error);
      }
      for (const { done } of batch) done();
    }
  }

  async #writeAll(lines: Buffer): Promise<void> {
    let rest = this.#isTorn ? Buffer.concat([newline, lines]) : lines;
    if (lines.length === 0) return;
    this.#isTorn = true;
    while (rest.length > 0) {
      const { bytesWritten } = await writeTo(this.#file, rest);
      rest = rest.subarray(bytesWritten);
    }
    this.#isTorn = false;
    await syncData(this.#file);
  }

  async #openAgain(): Promise<void> {
    this.#mustReopen = false;
    const before = this.#file;
    try {
      this.#file = openForAppend(this.#path);
      this.#isTorn = false;
      await closeFile(before);
    } catch (error) {
      this.#onError(error);
    }
  }
}

/** What a call is run with, what a person is asked about, and what the audit log has: the same. */
export function argumentsToRun(call: ToolCall): string {
  return call.withoutNulls ?? call.arguments;
}

function openForAppend(path: string): number {
  return openSync(path, "a", 0o600);
}

function describe({ call, server, owner, approvedBy }: AuditedCall): object {
  return {
    time: new Date().toISOString(),
    call_id: call.id,
    owner: owner.slice(0, ownerLength),
    server,
    tool: call.name,
    arguments_bytes: Buffer.byteLength(argumentsToRun(call)),
    arguments_sha256: sha256(argumentsToRun(call)),
    approved_by: approvedBy?.slice(0, ownerLength) ?? null,
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
