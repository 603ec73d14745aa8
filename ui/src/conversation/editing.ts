import { Store } from "../state/store.ts";

/** The message that is being edited. */
export const editingId = new Store<string | null>(null);
