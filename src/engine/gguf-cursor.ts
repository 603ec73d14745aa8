/** Bytes, numbers and strings of a file, read forward. */

import { readSync } from "node:fs";
import { FermataError } from "../errors.ts";

const windowBytes = 4 * 1024 * 1024;
/** A tokenizer's whole description, which some files have, takes a tenth. */
const longestString = 2 ** 28;

/** Reads a file forward in windows. No read passes its end: that throws `model_invalid`. */
export class GgufCursor {
  readonly path: string;
  readonly #descriptor: number;
  readonly #size: number;
  #window = Buffer.alloc(0);
  #windowStart = 0;
  #position = 0;

  /** `size` is the file's; `descriptor` stays the caller's to close. */
  constructor(path: string, descriptor: number, size: number) {
    this.path = path;
    this.#descriptor = descriptor;
    this.#size = size;
  }

  get position(): number {
    return this.#position;
  }

  get remaining(): number {
    return this.#size - this.#position;
  }

  damaged(what: string): FermataError {
    return new FermataError("model_invalid", `${this.path} is damaged: ${what}.`);
  }

  skip(count: number): void {
    if (count > this.remaining) throw this.#truncated();
    this.#position += count;
  }

  u8(): number {
    return this.#take(1).readUInt8();
  }

  u32(): number {
    return this.#take(4).readUInt32LE();
  }

  /** Counts, sizes and offsets: none that a file can hold is above 2^53. */
  u64(): number {
    const at = this.#pass(8);
    // In halves, and not from a view of its own: a vocabulary has 300,000 of them.
    const value = this.#window.readUInt32LE(at) + this.#window.readUInt32LE(at + 4) * 2 ** 32;
    if (value <= Number.MAX_SAFE_INTEGER) return value;
    throw this.damaged(`it holds a size of ${this.#window.readBigUInt64LE(at)}`);
  }

  /** The next `count` bytes, valid until the next read. */
  bytes(count: number): Buffer {
    return this.#take(count);
  }

  string(): string {
    const length = this.u64();
    if (length > this.remaining) throw this.#truncated();
    if (length > longestString) throw this.damaged(`it holds a text of ${length} bytes`);
    return this.#take(length).toString("utf8");
  }

  skipString(): void {
    this.skip(this.u64());
  }

  #take(count: number): Buffer {
    const from = this.#pass(count);
    return this.#window.subarray(from, from + count);
  }

  /** Reads past the next `count` bytes. @returns where they are in the window */
  #pass(count: number): number {
    if (count > this.remaining) throw this.#truncated();
    let from = this.#position - this.#windowStart;
    if (from + count > this.#window.length) {
      this.#moveWindow(count);
      from = 0;
    }
    this.#position += count;
    return from;
  }

  /** To the position, with at least `count` bytes. */
  #moveWindow(count: number): void {
    const length = Math.min(Math.max(windowBytes, count), this.remaining);
    this.#window = Buffer.allocUnsafe(length);
    this.#windowStart = this.#position;
    let read = 0;
    while (read < length) {
      const got = readSync(
        this.#descriptor,
        this.#window,
        read,
        length - read,
        this.#position + read,
      );
      if (got === 0) throw this.#truncated();
      read += got;
    }
  }

  #truncated(): FermataError {
    return new FermataError(
      "model_invalid",
      `${this.path} is truncated: its header ends after the end of the file at ${this.#size} bytes. Pull it again.`,
    );
  }
}
