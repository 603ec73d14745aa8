import { messageOf } from "../api/request.ts";
import { announce } from "../state/announcer.ts";
import { openIdOf, openState } from "../state/conversation.ts";
import { changeDraft, readTextFile } from "../state/draft.ts";
import { Store } from "../state/store.ts";

/** Why the last file could not be added. */
export const fileError = new Store<string | null>(null);

export async function addFiles(files: readonly File[]): Promise<void> {
  fileError.set(null);
  const id = openIdOf(openState.get());
  for (const file of files) {
    try {
      const added = await readTextFile(file);
      changeDraft(id, (draft) => ({ files: [...draft.files, added] }));
      announce(`${file.name} was added.`);
    } catch (error) {
      fileError.set(messageOf(error));
    }
  }
}
