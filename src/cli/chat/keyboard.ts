/** What is typed, now and in earlier sessions. */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import type { ReadStream } from "node:tty";

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

export type Key = "interrupt" | "end" | { character: string };

/** Lines that come so fast were pasted together. Milliseconds. */
const pasteMs = 25;
const escape = "\u001b";
const backspace = "\u007f";
/** Sequences of arrows and function keys, and control characters apart from Enter and backspace. */
const notText = new RegExp(
  `${escape}(?:\\[[0-?]*[ -/]*[@-~]|O.|.)?|[^\\P{Cc}\\r${backspace}]`,
  "gu",
);
const ctrlC = "\u0003";
const ctrlD = "\u0004";

/** What is typed while no line is read. */
export class TypedAhead {
  #keys = "";

  add(character: string): void {
    this.#keys += character;
  }

  /** Ctrl-D, which counts at the start of a line only. */
  end(): void {
    if (this.#keys === "" || this.#keys.endsWith("\r")) this.#keys += ctrlD;
  }

  clear(): void {
    this.#keys = "";
  }

  /** The first line with its "\r", or what was typed of one. Null: Ctrl-D. */
  take(): string | null {
    if (this.#keys.startsWith(ctrlD)) return null;
    const end = this.#keys.indexOf("\r") + 1 || this.#keys.length;
    const text = this.#keys.slice(0, end);
    this.#keys = this.#keys.slice(end);
    return withoutErased(text.replace(notText, ""));
  }
}

function withoutErased(text: string): string {
  const kept: string[] = [];
  for (const character of text) {
    if (character === backspace) kept.pop();
    else kept.push(character);
  }
  return kept.join("");
}

export class Keyboard {
  readonly #input: ReadStream;
  readonly #output: NodeJS.WritableStream;
  readonly #history: InputHistory;

  constructor(input: ReadStream, output: NodeJS.WritableStream, history: InputHistory) {
    this.#input = input;
    this.#output = output;
    this.#history = history;
  }

  /**
   * A line, or several that were pasted; a backslash at the end goes on in the next.
   * @param typed the line begins with it; a "\r" at its end is Enter
   */
  readLine(
    prompt: string,
    completions: (line: string) => string[],
    typed = "",
  ): Promise<string | "interrupt" | "end"> {
    return new Promise((resolve) => {
      const lines: string[] = [];
      let timer: NodeJS.Timeout | undefined;
      const reader = createInterface({
        input: this.#input,
        output: this.#output,
        terminal: true,
        history: this.#history.newestFirst(),
        removeHistoryDuplicates: true,
        completer: (line: string) => [completions(line), line],
      });
      let result: string | "interrupt" | "end" = "end";
      const finish = (value: typeof result): void => {
        result = value;
        reader.close();
      };
      reader.on("close", () => {
        clearTimeout(timer);
        resolve(result);
      });
      reader.on("SIGINT", () => {
        this.#output.write("\n");
        finish("interrupt");
      });
      reader.on("line", (line) => {
        clearTimeout(timer);
        lines.push(line.replace(/\\$/, ""));
        if (line.endsWith("\\")) {
          reader.setPrompt("… ");
          reader.prompt();
          return;
        }
        timer = setTimeout(() => {
          const text = lines.join("\n").trim();
          if (text !== "") this.#history.add(text);
          finish(text);
        }, pasteMs);
      });
      reader.setPrompt(prompt);
      reader.prompt();
      if (typed !== "") reader.write(typed);
    });
  }

  /** Keys go to `onKey` and are not shown. Gives back what ends it. */
  listen(onKey: (key: Key) => void): () => void {
    const input = this.#input;
    const onData = (data: Buffer | string): void => {
      for (const character of String(data)) {
        if (character === ctrlC) onKey("interrupt");
        else if (character === ctrlD) onKey("end");
        else onKey({ character });
      }
    };
    input.setRawMode(true);
    input.on("data", onData);
    input.resume();
    return () => {
      input.off("data", onData);
      input.setRawMode(false);
      input.pause();
    };
  }
}
