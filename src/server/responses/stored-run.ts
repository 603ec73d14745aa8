/** Writes a response to the store at the moments after which it must survive. */

import type { ResponseStore } from "../../store/types.ts";
import type { ResponseWriter } from "./response-writer.ts";
import type { Item } from "./types.ts";
import { transcriptOf } from "./transcript.ts";

export interface StoredRunOptions {
  owner: string;
  writer: ResponseWriter;
  input: readonly Item[];
  /** Outputs of calls that came meanwhile, by call id. */
  answers(): ReadonlyMap<string, Item>;
}

export class StoredRun {
  readonly #store: ResponseStore | null;
  readonly #options: StoredRunOptions;
  #hasBegun = false;

  /** @param store null: nothing is kept */
  constructor(store: ResponseStore | null, options: StoredRunOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Before anybody learns the id. */
  async begin(): Promise<void> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { owner, input, writer } = this.#options;
    const { id, created_at: createdAt, previous_response_id: previous } = writer.response;
    await this.#store?.createResponse({
      id,
      owner,
      createdAt,
      previousResponseId: previous,
      conversationId: writer.response.conversation?.id ?? null,
      body: this.#body(),
      input,
    });
  }

  async update(): Promise<void> {
    await this.begin();
    const { owner, writer } = this.#options;
    const output = this.transcript();
    await this.#store?.updateResponse(owner, writer.response.id, this.#body(), output);
  }

  /** What the response added to its conversation so far. */
  transcript(): Item[] {
    return transcriptOf(this.#options.writer.output, this.#options.answers());
  }

  /** Before the last event, or the whole response, goes out. */
  async end(): Promise<void> {
    await this.update();
    const { owner, writer } = this.#options;
    if (writer.response.conversation !== null && writer.response.status !== "failed")
      await this.#store?.appendToConversation(owner, writer.response.id);
  }

  #body(): Record<string, unknown> {
    const { output: _output, ...body } = this.#options.writer.response;
    return body;
  }
}
