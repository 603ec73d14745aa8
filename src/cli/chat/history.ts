/** What was typed before, over sessions: a line a message, the newest last. */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const mostEntries = 1000;

export class InputHistory {
  readonly #path: string;
  readonly #entries: string[];

  constructor(path: string) {
    this.#path = path;
    this.#entries = readEntries(path);
  }

  /** The newest first, as readline has it. Messages of several lines are left out: it cannot edit them. */
  newestFirst(): string[] {
    return this.#entries.filter((entry) => !entry.includes("\n")).toReversed();
  }

  /** A folder that cannot be written costs the history, not the conversation. */
  add(entry: string): void {
    if (entry === this.#entries.at(-1)) return;
    this.#entries.push(entry);
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      const options = { mode: 0o600 };
      if (this.#entries.length <= mostEntries) {
        appendFileSync(this.#path, `${JSON.stringify(entry)}\n`, options);
        return;
      }
      this.#entries.splice(0, this.#entries.length - mostEntries / 2);
      const text = this.#entries.map((line) => `${JSON.stringify(line)}\n`).join("");
      writeFileSync(this.#path, text, options);
    } catch {
      // It stays for this session.
    }
  }
}

function readEntries(path: string): string[] {
  try {
    const lines = readFileSync(path, "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as string);
  } catch {
    return [];
  }
}
