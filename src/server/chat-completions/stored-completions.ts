/** Chat completions that were asked to be kept, in the store of responses, where no response of their owner's is. */

import { FermataError } from "../../errors.ts";
import type { OpenStore, StoredItem } from "../../store/types.ts";
import type { ChatCompletion } from "./completion.ts";
import type { JsonObject } from "../../json.ts";

export type Metadata = Record<string, string>;

export interface StoredCompletion extends ChatCompletion {
  metadata: Metadata;
}

const messageType = "chat.message";

export class StoredCompletions {
  readonly #store: OpenStore;
  readonly #owner: string;

  constructor(store: OpenStore, owner: string) {
    this.#store = store;
    this.#owner = `${owner}/chat`;
  }

  /** @param messages as they were sent */
  async add(
    completion: ChatCompletion,
    metadata: Metadata,
    messages: readonly JsonObject[],
  ): Promise<void> {
    const { id, created } = completion;
    await this.#store.responses.create({
      id,
      owner: this.#owner,
      createdAt: created,
      previousResponseId: null,
      conversationId: null,
      body: { ...completion, metadata },
      input: messages.map((message, index) => ({
        ...message,
        id: `${id}-${index}`,
        type: messageType,
      })),
    });
  }

  /** The oldest first. */
  async all(): Promise<StoredCompletion[]> {
    const stored = await this.#store.responses.all(this.#owner);
    return stored.map(({ body }) => body as unknown as StoredCompletion);
  }

  /** @throws FermataError not_found, as those below */
  async find(id: string): Promise<StoredCompletion> {
    const stored = await this.#store.responses.find(this.#owner, id);
    if (stored === null) throw notFound(id);
    return stored.body as unknown as StoredCompletion;
  }

  async setMetadata(id: string, metadata: Metadata): Promise<StoredCompletion> {
    const completion = { ...(await this.find(id)), metadata };
    await this.#store.responses.update(this.#owner, id, { ...completion }, []);
    return completion;
  }

  async delete(id: string): Promise<void> {
    if (!(await this.#store.responses.delete(this.#owner, id))) throw notFound(id);
  }

  async messages(id: string): Promise<StoredItem[]> {
    const items = await this.#store.responses.items(this.#owner, id);
    if (items === null) throw notFound(id);
    return items.input;
  }
}

function notFound(id: string): FermataError {
  const message = `There is no stored chat completion "${id.slice(0, 100)}". One is kept when it is made with "store": true.`;
  return new FermataError("not_found", message, { param: "id" });
}
