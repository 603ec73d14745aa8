/**
 * An MCP server as a child process, over its standard input and output. It starts without a shell. Two seconds
 * after `close` it and the processes that it started are gone.
 */

import type { ChildProcess } from "node:child_process";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { JSONRPCMessageSchema, type JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import spawn from "cross-spawn";
import { FermataError } from "../../errors.ts";
import { exactJson } from "../../json.ts";
import { ProcessGuard } from "../../process-guard.ts";
import {
  BoundedLines,
  failedCall,
  idOfOversized,
  type Line,
  mebibytes,
  tooLarge,
} from "./bounded-lines.ts";
import { plainText } from "../text.ts";

/** From the end of its input to SIGTERM, and from there to SIGKILL. */
const patienceMs = 700;
const termMs = 300;
/** A process that it left behind may keep its output open. */
const outputAfterExitMs = 250;
/** Limits of output that answers no request. A server beyond them is killed. Progress of a request under way is no such line. */
const unaskedLimitBytes = 128 * 1024 ** 2;
const unaskedLimitLines = 20_000;
const heardNotifications = new Set([
  "notifications/cancelled",
  "notifications/progress",
  "notifications/tasks/status",
  "notifications/tools/list_changed",
]);
/** Reports of lines that are no message, until the next answer. */
const maxComplaints = 5;
const lastWordsLength = 300;
/** Kept of standard error: a stack may stand behind the words. */
const keptErrorLength = 8000;

/** Ends the servers when Fermata crashes or is killed. */
const guard = new ProcessGuard();

interface StdioTransportOptions {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd?: string | undefined;
  /** Of one message. Longer answers fail their call. */
  maxMessageBytes: number;
  onStandardError(text: string): void;
}

export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];

  readonly #options: StdioTransportOptions;
  readonly #lines: BoundedLines;
  #child: ChildProcess | null = null;
  #gone: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** It closed its input or output and goes on. */
  #isDeaf = false;
  #isEnding = false;
  /** Ids of requests under way. */
  readonly #asked = new Set<unknown>();
  #unasked = { bytes: 0, lines: 0, complaints: 0 };
  #ending = "";
  #errorText = "";

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    this.#lines = new BoundedLines(options.maxMessageBytes);
  }

  /** How the process ended and the end of its standard error; empty while it runs. */
  get ending(): string {
    const words = lastWordsOf(this.#errorText);
    return this.#ending === "" || words === ""
      ? this.#ending
      : `${this.#ending}, its last words: ${words}`;
  }

  get isAlive(): boolean {
    return this.#child !== null && !this.#isClosed;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#options;
    const child = spawn(command, [...args], {
      // The SDK's own transport would let more through; this is all that the server gets.
      env,
      cwd,
      stdio: ["pipe", "pipe", "pipe"],
      shell: false,
      windowsHide: true,
      // A group of its own: what it starts is ended with it, and Ctrl-C is for Fermata alone.
      detached: process.platform !== "win32",
    });
    this.#child = child;
    if (child.pid !== undefined) guard.add(groupOf(child.pid));
    this.#gone = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#ending ||=
          signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
        resolve();
        setTimeout(() => this.#close(), outputAfterExitMs).unref();
      });
      child.once("error", resolve);
    });
    child.once("close", () => this.#close());
    const hangUp = (): void => {
      this.#isDeaf = true;
      this.#end();
    };
    child.stdin?.on("error", (error) => {
      this.onerror?.(error);
      hangUp();
    });
    child.stdout?.on("error", (error) => this.onerror?.(error));
    child.stdout?.once("close", hangUp);
    child.stderr?.on("error", (error) => this.onerror?.(error));
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on("data", (chunk: Buffer) => this.#hearError(chunk));
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        this.#close();
        reject(error);
      });
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin;
    if (this.#isClosed || input === null || input === undefined || !input.writable) {
      // One that closed its input is about to end, or to be ended.
      await this.#gone;
      throw new FermataError("mcp_start_failed", this.ending || "the server does not run");
    }
    const { maxMessageBytes } = this.#options;
    if (input.writableLength > maxMessageBytes) {
      const problem = `the server does not read: ${mebibytes(input.writableLength)} wait for it`;
      throw new FermataError("mcp_start_failed", problem);
    }
    this.#note(message);
    input.write(`${exactJson(message)}\n`);
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null || child.pid === undefined) return this.#close();
    this.#end();
    await this.#gone;
    this.#close();
  }

  /** Asks it to leave, and makes it do so if it stays. */
  #end(): void {
    this.#child?.stdin?.end();
    if (this.#isEnding) return;
    this.#isEnding = true;
    const steps = [
      setTimeout(() => {
        if (this.#isDeaf) this.#ending ||= "it closed its input or output and was ended";
        this.#signal("SIGTERM");
      }, patienceMs),
      setTimeout(() => this.#signal("SIGKILL"), patienceMs + termMs),
    ];
    void this.#gone.then(() => {
      for (const step of steps) clearTimeout(step);
    });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Those that it started and left.
    this.#signal("SIGKILL");
    if (this.#child?.pid !== undefined) guard.remove(groupOf(this.#child.pid));
    this.onclose?.();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child?.pid === undefined) return;
    try {
      process.kill(groupOf(this.#child.pid), signal);
    } catch {
      // Already gone.
    }
  }

  #note(message: JSONRPCMessage): void {
    if (!("method" in message)) return;
    if ("id" in message) this.#asked.add(message.id);
    else if (message.method === "notifications/cancelled")
      this.#asked.delete(message.params?.["requestId"]);
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#unasked.bytes += chunk.length;
    for (const line of this.#lines.push(chunk)) {
      if (!this.#readLine(line)) this.#unasked.lines += 1;
      if (this.#unasked.lines > unaskedLimitLines) break;
    }
    const { bytes, lines } = this.#unasked;
    if (bytes <= unaskedLimitBytes && lines <= unaskedLimitLines) return;
    this.#ending = `it wrote ${lines} lines (${mebibytes(bytes)}) that answer nothing and was ended`;
    this.#child?.stdout?.removeAllListeners("data").resume();
    this.#signal("SIGKILL");
  }

  /** @returns whether it is the progress of a request under way */
  #readLine(line: Line): boolean {
    if (line.kind === "oversized") {
      const id = idOfOversized(line);
      this.#complain(`a line of ${mebibytes(line.bytes)} was not read`);
      if (id !== null) this.#hear(tooLarge(id, line.bytes, this.#options.maxMessageBytes));
      return false;
    }
    if (line.text.trim() === "") return false;
    const message = parseMessage(line.text);
    if (message === null) this.#complain(`a line of ${line.text.length} characters is no message`);
    if (message === null || message === "unheard") return false;
    this.#hear(message);
    return (
      "method" in message &&
      message.method === "notifications/progress" &&
      this.#asked.has(message.params?.["progressToken"])
    );
  }

  #hear(message: JSONRPCMessage): void {
    if ("method" in message) return this.onmessage?.(message);
    if (this.#asked.delete(message.id)) this.#unasked = { bytes: 0, lines: 0, complaints: 0 };
    // The SDK hears notifications a little later: progress that was written just before the answer would be too late.
    queueMicrotask(() => this.onmessage?.(message));
  }

  #complain(message: string): void {
    this.#unasked.complaints += 1;
    if (this.#unasked.complaints <= maxComplaints)
      this.onerror?.(new FermataError("internal_error", message));
  }

  #hearError(chunk: Buffer): void {
    const written = chunk.toString("utf8");
    this.#errorText = (this.#errorText + written).slice(-keptErrorLength);
    const text = plainText(written.trimEnd(), 4000);
    if (text !== "") this.#options.onStandardError(text);
  }
}

/** Without indented lines, if others are there: the frames of a stack, the flags of a usage. */
function lastWordsOf(errorText: string): string {
  const words = errorText.replace(/^[ \t].*(\n|$)/gm, "").trim() || errorText.trim();
  return plainText(words, words.length).slice(-lastWordsLength);
}

/** As `kill` takes it. */
function groupOf(pid: number): number {
  return process.platform === "win32" ? pid : -pid;
}

/**
 * Null: it is no message. Of notifications only those that somebody hears are checked whole, which takes
 * much longer than to read them. An answer that breaks the protocol becomes an error of its call.
 */
function parseMessage(text: string): JSONRPCMessage | "unheard" | null {
  if (!text.startsWith("{")) return null;
  try {
    const { id, method, result, error } = JSON.parse(text) as Record<string, unknown>;
    if (typeof method === "string") {
      if (id === undefined && !heardNotifications.has(method)) return "unheard";
      return JSONRPCMessageSchema.parse(JSON.parse(text));
    }
    if (typeof id !== "number") return null;
    if (typeof result === "object" && result !== null && !Array.isArray(result))
      return { jsonrpc: "2.0", id, result: result as Record<string, unknown> };
    const { code, message, data } = (error ?? {}) as Record<string, unknown>;
    return Number.isInteger(code) && typeof message === "string"
      ? failedCall(id, message, Number(code), data)
      : failedCall(id, "its answer breaks the protocol");
  } catch {
    return null;
  }
}
