/** What is being written: a draft of each conversation, and one that begins a new conversation. */

import type { TextFile } from "../api/wire.ts";
import { Store, useSelected } from "./store.ts";

export interface Draft {
  text: string;
  files: readonly TextFile[];
  /** It is on its way, and stays until the server has it. */
  isSending: boolean;
  /** Why it was not sent. */
  problem: string | null;
}

const emptyDraft: Draft = { text: "", files: [], isSending: false, problem: null };

/** By conversation; the new one's is that of "". */
const drafts = new Store<Readonly<Record<string, Draft>>>({});

/** @param id null: the new conversation */
export function draftOf(id: string | null): Draft {
  return drafts.get()[id ?? ""] ?? emptyDraft;
}

export function useDraft(id: string | null): Draft {
  return useSelected(drafts, (all) => all[id ?? ""] ?? emptyDraft);
}

export function changeDraft(id: string | null, change: (draft: Draft) => Partial<Draft>): void {
  const draft = draftOf(id);
  drafts.update((all) => ({ ...all, [id ?? ""]: { ...draft, ...change(draft) } }));
}

/** Takes out what was sent. What was added since then stays. */
export function takeFromDraft(id: string, sent: Draft): void {
  changeDraft(id, ({ text, files }) => ({
    text: text.startsWith(sent.text) ? text.slice(sent.text.length) : text,
    files: files.filter((file) => !sent.files.includes(file)),
  }));
}

/** The new conversation has its id now. */
export function adoptDraft(id: string): void {
  const draft = draftOf(null);
  changeDraft(id, () => draft);
  changeDraft(null, () => emptyDraft);
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
