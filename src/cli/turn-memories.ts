/** What models generated, while they are out of memory. */

import { SpliceStore } from "../chat/prompt/splice-store.ts";
import type { ModelFile } from "../models/types.ts";
import { RecentMap } from "../recent-map.ts";

/** Of a folder with many models, so many keep what they generated while they are away. */
const mostFiles = 16;

/** The generated turns of each model file: a conversation finds its own again after its model was away. */
export class TurnMemories {
  readonly #stores = new RecentMap<string, SpliceStore>(mostFiles);

  /** A file that was replaced has another vocabulary, maybe: it begins anew. */
  of({ path, bytes, created }: Pick<ModelFile, "path" | "bytes" | "created">): SpliceStore {
    const key = JSON.stringify([path, bytes, created]);
    const store = this.#stores.get(key) ?? new SpliceStore();
    this.#stores.set(key, store);
    return store;
  }
}
