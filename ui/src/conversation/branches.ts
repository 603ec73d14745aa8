/** The tree of a conversation's messages, and the path through it that is shown. Pure. */

import type { Message } from "../api/wire.ts";

export interface Branches {
  /** Children in the order in which they were made; of null: the first messages. */
  children: ReadonlyMap<string | null, readonly Message[]>;
  byId: ReadonlyMap<string, Message>;
}

export function branchesOf(messages: readonly Message[]): Branches {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const children = new Map<string | null, Message[]>();
  for (const message of messages) {
    // A message whose parent is gone stands at the beginning, where it can be seen.
    const parent = byId.has(message.parent_id ?? "") ? message.parent_id : null;
    const siblings = children.get(parent) ?? [];
    siblings.push(message);
    children.set(parent, siblings);
  }
  return { children, byId };
}

/** From the first message to `leafId`, or to the newest message if there is no such leaf. */
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

/** The end of the branch that begins with `id`, by way of the newest child each time. */
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
