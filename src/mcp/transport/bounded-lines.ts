/** Cuts a byte stream into lines and keeps at most a limit of each. Answers that are too long become errors of their call. */

import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

export type Line =
  | { kind: "line"; text: string }
  /** Too long to keep: how it begins and ends. */
  | { kind: "oversized"; bytes: number; head: string; tail: string };

const newline = 0x0a;
/** Kept of either end of a line that is too long. */
const edgeBytes = 512;

export class BoundedLines {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;
  /** Set while the line is too long. */
  #head: Buffer | null = null;
  #tail: Buffer = Buffer.alloc(0);

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  /** Lines that this chunk ends, without their line ends. */
  *push(chunk: Buffer): Generator<Line, void, void> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      this.#add(chunk.subarray(start, end < 0 ? chunk.length : end));
      if (end < 0) return;
      yield this.#take();
      start = end + 1;
    }
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#head !== null) {
      this.#tail = lastBytes([this.#tail, part]);
      return;
    }
    this.#parts.push(part);
    if (this.#size <= this.#limit) return;
    this.#head = firstBytes(this.#parts);
    this.#tail = lastBytes(this.#parts);
    this.#parts = [];
  }

  #take(): Line {
    const line: Line =
      this.#head === null
        ? { kind: "line", text: Buffer.concat(this.#parts).toString("utf8").replace(/\r$/, "") }
        : {
            kind: "oversized",
            bytes: this.#size,
            head: this.#head.toString("latin1"),
            tail: this.#tail.toString("latin1"),
          };
    this.#parts = [];
    this.#size = 0;
    this.#head = null;
    this.#tail = Buffer.alloc(0);
    return line;
  }
}

function firstBytes(parts: readonly Buffer[]): Buffer {
  const kept: Buffer[] = [];
  let size = 0;
  for (let index = 0; index < parts.length && size < edgeBytes; index++) {
    kept.push(parts[index]!);
    size += parts[index]!.length;
  }
  return Buffer.concat(kept).subarray(0, edgeBytes);
}

function lastBytes(parts: readonly Buffer[]): Buffer {
  const kept: Buffer[] = [];
  let size = 0;
  for (let index = parts.length - 1; index >= 0 && size < edgeBytes; index--) {
    kept.unshift(parts[index]!);
    size += parts[index]!.length;
  }
  return Buffer.concat(kept).subarray(-edgeBytes);
}

/** JSON-RPC's range for errors of an implementation. */
const tooLargeCode = -32010;

type Oversized = Extract<Line, { kind: "oversized" }>;

/**
 * The call's id stands at the very beginning or the very end of a message, whichever its server
 * prefers; within, it would be content.
 */
export function idOfOversized({ head, tail }: Pick<Oversized, "head" | "tail">): number | null {
  const first = /^[^{]{0,16}\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(
    head,
  );
  const last = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail);
  const id = first?.[1] ?? last?.[1];
  return id === undefined ? null : Number(id);
}

export function tooLarge(id: number, bytes: number, limitBytes: number): JSONRPCMessage {
  const message = `its answer of ${mebibytes(bytes)} is larger than the limit of ${mebibytes(limitBytes)}`;
  return failedCall(id, message, tooLargeCode);
}

export function failedCall(
  id: number,
  message: string,
  code = -32000,
  data?: unknown,
): JSONRPCMessage {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
