/** Server-sent events out of the pieces in which they arrive. */

export interface SseEvent {
  /** Of the last event that had one. */
  id: string;
  /** `message` if it has no name. */
  event: string;
  data: string;
}

export class SseParser {
  /** How long to wait before a reconnection, if the server said so. */
  retryMs: number | null = null;
  /** Of the line that has no end yet. To look through a long one again at each piece would take too long. */
  #rest: string[] = [];
  #id: string;
  #event = "";
  #data: string[] = [];

  constructor(lastEventId = "") {
    this.#id = lastEventId;
  }

  /** Events that are whole. One that was cut by the end of the stream never was. */
  push(text: string): SseEvent[] {
    const mayEnd = /[\r\n]/.test(text) || this.#rest.at(-1)?.endsWith("\r") === true;
    this.#rest.push(text);
    if (!mayEnd) return [];
    const lines = this.#rest.join("").split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.splice(-1);
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): SseEvent | null {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }

  #dispatch(): SseEvent | null {
    const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? null : event;
  }
}
