/** Settings of the next message. The server keeps a conversation's own settings. */

import type { ResponseFormat, TextFile } from "../api/wire.ts";
import { Store } from "./store.ts";

export interface Draft {
  files: readonly TextFile[];
  responseFormat: ResponseFormat | null;
  /** The model of a conversation that does not exist yet. Null: the server's default. */
  model: string | null;
  /** Null: all. */
  tools: readonly string[] | null;
}

export const emptyDraft: Draft = { files: [], responseFormat: null, model: null, tools: null };

export const draft = new Store<Draft>(emptyDraft);

export function changeDraft(change: Partial<Draft>): void {
  draft.update((value) => ({ ...value, ...change }));
}

/** Largest file, in UTF-16 units; no context is larger. */
const largestFile = 1_000_000;

/** @throws Error if the file is not text */
export async function readTextFile(file: File): Promise<TextFile> {
  if (file.size > 4 * largestFile) throw new Error(`${file.name} is larger than 4 MB.`);
  const bytes = await file.arrayBuffer();
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${file.name} is no text. Only text files can be read.`);
  }
  if (text.includes("\0")) throw new Error(`${file.name} is no text. Only text files can be read.`);
  if (text.length > largestFile)
    throw new Error(`${file.name} is longer than a million characters.`);
  return { name: file.name, text };
}
