/** A response while it is generated: several may read it, it may be cancelled, calls may be answered. */

import type { FermataError } from "../../errors.ts";
import { LiveLog } from "../answer/live-log.ts";
import type { ResponseWriter } from "./response-writer.ts";
import type { ResponseObject, WireEvent } from "./types.ts";
import type { HeldCalls } from "./held-calls.ts";

export class LiveResponse {
  readonly owner: string;
  /** Null: calls of the client's functions end the response. */
  readonly held: HeldCalls | null;
  /** Its client asked for the wait, and knows that a request with the outputs may resume it. */
  readonly resumesByRequest: boolean;
  readonly #writer: ResponseWriter;
  readonly #abort: AbortController;
  readonly #events = new LiveLog<WireEvent>((event) => event.sequence_number);
  readonly #ended: Promise<void>;
  #end: () => void = () => {};

  constructor(
    owner: string,
    writer: ResponseWriter,
    abort: AbortController,
    wait: { held: HeldCalls | null; resumesByRequest: boolean },
  ) {
    this.owner = owner;
    this.held = wait.held;
    this.resumesByRequest = wait.resumesByRequest;
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
    this.#events.append(event);
  }

  finish(): void {
    this.#end();
    this.#events.end();
  }

  /** Events numbered above `after`, as they come, to the last. */
  read(after: number): AsyncGenerator<WireEvent, void, void> {
    return this.#events.read(after);
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

  /** One that waits for the output of any of these calls. */
  waitingFor(owner: string, callIds: readonly string[]): LiveResponse | null {
    if (callIds.length === 0) return null;
    const isOne = ({ held, owner: its }: LiveResponse): boolean =>
      its === owner && held !== null && held.pending.some((id) => callIds.includes(id));
    return [...this.#byId.values()].find(isOne) ?? null;
  }

  /** Resolves when all have ended. */
  async cancelAll(reason: FermataError): Promise<void> {
    const all = [...this.#byId.values()];
    for (const live of all) live.cancel(reason);
    await Promise.all(all.map((live) => live.ended));
  }
}
