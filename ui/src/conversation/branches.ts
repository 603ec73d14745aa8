/** The tree of a conversation's messages and the shown path. Pure. */

import type { Message } from "../api/wire.ts";

export interface Branches {
  /** Children in order of creation; the children of null are the first messages. */
  children: ReadonlyMap<string | null, readonly Message[]>;
  byId: ReadonlyMap<string, Message>;
}

export function branchesOf(messages: readonly Message[]): Branches {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const children = new Map<string | null, Message[]>();
  for (const message of messages) {
    // A message without its parent is shown at the beginning.
    const parent = byId.has(message.parent_id ?? "") ? message.parent_id : null;
    const siblings = children.get(parent) ?? [];
    siblings.push(message);
    children.set(parent, siblings);
  }
  return { children, byId };
}

/** The path from the first message to `leafId`, or to the newest message if that leaf is missing. */
export function pathTo(branches: Branches, leafId: string | null): Message[] {
  const start = branches.byId.get(leafId ?? "") ?? branches.byId.get(newestLeaf(branches, null));
  const path: Message[] = [];
  const seen = new Set<string>();
  for (let at = start; at !== undefined && !seen.has(at.id);) {
    seen.add(at.id);
    path.unshift(at);
    at = branches.byId.get(at.parent_id ?? "");
  }
  return path;
}

/** The end of the branch that begins with `id`, following the newest child each time. */
export function newestLeaf(branches: Branches, id: string | null): string {
  let at = id;
  const seen = new Set<string | null>();
  for (;;) {
    const next = branches.children.get(at)?.at(-1);
    if (next === undefined || seen.has(next.id)) return at ?? "";
    seen.add(next.id);
    at = next.id;
  }
}

export interface Siblings {
  index: number;
  ids: string[];
}

export function siblingsOf(branches: Branches, message: Message): Siblings {
  const parent = branches.byId.has(message.parent_id ?? "") ? message.parent_id : null;
  const ids = (branches.children.get(parent) ?? [message]).map(({ id }) => id);
  return { index: ids.indexOf(message.id), ids };
}
