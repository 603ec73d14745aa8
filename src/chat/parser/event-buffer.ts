/** Collects the events of a push; joins neighbours of one kind. */

import type { OutputEvent } from "./text-parser.ts";
import type { ToolCall } from "../types.ts";
import type { FinderSink } from "./call-finder.ts";

export class EventBuffer implements FinderSink {
  readonly #calls: ToolCall[];
  readonly #newCallId: () => string;
  #events: OutputEvent[] = [];
  #kind: "" | "content" | "reasoning" | "arguments" = "";
  #text: string[] = [];
  #index = -1;
  #id = "";
  #name = "";
  #arguments: string[] = [];

  /** @param calls complete calls are appended */
  constructor(calls: ToolCall[], newCallId: () => string) {
    this.#calls = calls;
    this.#newCallId = newCallId;
  }

  take(): OutputEvent[] {
    this.#flush();
    const events = this.#events;
    this.#events = [];
    return events;
  }

  content(text: string): void {
    this.#append("content", text);
  }

  reasoning(text: string): void {
    this.#append("reasoning", text);
  }

  start(name: string): void {
    this.#flush();
    this.#index += 1;
    this.#id = this.#newCallId();
    this.#name = name;
    this.#arguments = [];
    this.#events.push({ type: "call-start", index: this.#index, id: this.#id, name });
  }

  arguments(delta: string): void {
    if (delta === "") return;
    this.#arguments.push(delta);
    this.#append("arguments", delta);
  }

  end(): void {
    this.#flush();
    const call = { id: this.#id, name: this.#name, arguments: this.#arguments.join("") };
    this.#calls.push(call);
    this.#events.push({ type: "call-end", index: this.#index, call });
  }

  #append(kind: "content" | "reasoning" | "arguments", text: string): void {
    if (this.#kind !== kind) this.#flush();
    this.#kind = kind;
    this.#text.push(text);
  }

  #flush(): void {
    const text = this.#text.join("");
    if (this.#kind === "arguments")
      this.#events.push({ type: "call-arguments", index: this.#index, delta: text });
    else if (this.#kind !== "") this.#events.push({ type: this.#kind, text });
    this.#kind = "";
    this.#text = [];
  }
}
