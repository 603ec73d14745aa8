/** A response while it is generated: several may read it, it may be cancelled, calls may be answered. */

import type { FermataError } from "../../errors.ts";
import type { ResponseWriter } from "../openai/responses/response-writer.ts";
import type { ResponseObject, WireEvent } from "../openai/responses/types.ts";
import type { HeldCalls } from "./held-calls.ts";

export class LiveResponse {
  readonly owner: string;
  /** Null: calls of the client's functions end the response. */
  readonly held: HeldCalls | null;
  readonly #writer: ResponseWriter;
  readonly #abort: AbortController;
  readonly #events: WireEvent[] = [];
  #wake: () => void = () => {};
  #change = this.#nextChange();
  #hasEnded = false;
  readonly #ended: Promise<void>;
  #end: () => void = () => {};

  constructor(
    owner: string,
    writer: ResponseWriter,
    abort: AbortController,
    held: HeldCalls | null,
  ) {
    this.owner = owner;
    this.held = held;
    this.#writer = writer;
    this.#abort = abort;
    this.#ended = new Promise((resolve) => (this.#end = resolve));
  }

  get id(): string {
    return this.#writer.response.id;
  }

  /** As far as it is. */
  get response(): ResponseObject {
    return { ...this.#writer.response, output: [...this.#writer.output] };
  }

  get ended(): Promise<void> {
    return this.#ended;
  }

  cancel(reason: FermataError): void {
    this.#abort.abort(reason);
  }

  /** Keeps an event for those who read later. */
  append(event: WireEvent): void {
    this.#events.push(event);
    this.#notify();
  }

  finish(): void {
    this.#hasEnded = true;
    this.#end();
    this.#notify();
  }

  /** Events numbered above `after`, as they come, to the last. */
  async *read(after: number): AsyncGenerator<WireEvent, void, void> {
    let index = this.#events.findIndex((event) => event.sequence_number > after);
    if (index < 0) index = this.#events.length;
    for (;;) {
      const change = this.#change;
      for (; index < this.#events.length; index++) {
        const event = this.#events[index]!;
        if (event.sequence_number > after) yield event;
      }
      if (this.#hasEnded && index >= this.#events.length) return;
      await change;
    }
  }

  #notify(): void {
    const wake = this.#wake;
    this.#change = this.#nextChange();
    wake();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

/** Responses that are being generated, by id. */
export class LiveResponses {
  readonly #byId = new Map<string, LiveResponse>();

  add(live: LiveResponse): void {
    this.#byId.set(live.id, live);
    void live.ended.then(() => this.#byId.delete(live.id));
  }

  find(owner: string, id: string): LiveResponse | null {
    const live = this.#byId.get(id);
    return live?.owner === owner ? live : null;
  }

  /** Resolves when all have ended. */
  async cancelAll(reason: FermataError): Promise<void> {
    const all = [...this.#byId.values()];
    for (const live of all) live.cancel(reason);
    await Promise.all(all.map((live) => live.ended));
  }
}
