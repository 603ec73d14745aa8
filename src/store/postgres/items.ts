/** Items, each stored once. Within the caller's transaction, which holds the lock of the owner's items. */

import { freshId, itemDigest } from "../item-identity.ts";
import type { StoredItem } from "../types.ts";
import { sql } from "../sql.ts";
import type { Statements } from "./database.ts";

interface ItemRow {
  key: number;
  id: string;
  digest: string;
}

/** Who writes items of an owner waits for who does so already: two that store the same would both add it. */
export async function lockItems(on: Statements, owner: string): Promise<void> {
  await on.run(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`items of ${owner}`}, 0))`);
}

/**
 * The keys of what a client sent. Known: by its id, if it says the same; else by what it says, but for one that is in
 * `history` or earlier in `items`, since a history may say the same twice. An id that stands for something else gets out
 * of its way.
 */
export async function referItems(
  on: Statements,
  owner: string,
  items: readonly StoredItem[],
  history: Iterable<number>,
): Promise<number[]> {
  if (items.length === 0) return [];
  const digests = items.map(itemDigest);
  const ids = items.map(({ id }) => id);
  const rows = await on.all<ItemRow>(sql`SELECT key, id, digest FROM fermata.items
    WHERE owner = ${owner} AND (id = ANY(${ids}) OR digest = ANY(${digests})) ORDER BY key`);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const taken = new Set(history);
  const free = new Map<string, number[]>();
  for (const { key, digest } of rows.toReversed())
    if (!taken.has(key)) free.set(digest, [...(free.get(digest) ?? []), key]);
  const added: { item: StoredItem; digest: string }[] = [];
  const places = items.map((item, index): number | { added: number } => {
    const digest = digests[index]!;
    const sameId = byId.get(item.id);
    const twin = sameId?.digest === digest && !taken.has(sameId.key) ? sameId.key : null;
    const key = twin ?? nextFree(free.get(digest), taken);
    if (key !== null) {
      taken.add(key);
      return key;
    }
    const stored = sameId === undefined ? item : { ...item, id: freshId(item.id) };
    // Of this request, and nobody else's: its key comes when it is stored.
    byId.set(stored.id, { key: -1, id: stored.id, digest: "" });
    return { added: added.push({ item: stored, digest }) - 1 };
  });
  const keys = await addItems(on, owner, added);
  return places.map((place) => (typeof place === "number" ? place : keys[place.added]!));
}

/** The oldest free one of a digest. */
function nextFree(keys: number[] | undefined, taken: ReadonlySet<number>): number | null {
  for (;;) {
    const key = keys?.pop();
    if (key === undefined) return null;
    if (!taken.has(key)) return key;
  }
}

/** The keys of items that this server wrote. A later version replaces an earlier one. */
export async function putItems(
  on: Statements,
  owner: string,
  items: readonly StoredItem[],
): Promise<number[]> {
  const last = new Map(items.map((item) => [item.id, item]));
  const rows = await on.all<{ key: number; id: string }>(sql`
    INSERT INTO fermata.items (owner, id, digest, body)
    SELECT ${owner}, id, digest, body
    FROM unnest(${[...last.keys()]}::text[], ${[...last.values()].map(itemDigest)}::text[],
      ${[...last.values()].map((item) => JSON.stringify(item))}::text[])
      WITH ORDINALITY AS new (id, digest, body, place) ORDER BY place
    ON CONFLICT (owner, id) DO UPDATE SET digest = excluded.digest, body = excluded.body
    RETURNING key, id`);
  const keys = new Map(rows.map(({ key, id }) => [id, key]));
  return items.map(({ id }) => keys.get(id)!);
}

async function addItems(
  on: Statements,
  owner: string,
  added: readonly { item: StoredItem; digest: string }[],
): Promise<number[]> {
  if (added.length === 0) return [];
  const rows = await on.all<{ key: number; id: string }>(sql`
    INSERT INTO fermata.items (owner, id, digest, body)
    SELECT ${owner}, id, digest, body
    FROM unnest(${added.map(({ item }) => item.id)}::text[],
      ${added.map(({ digest }) => digest)}::text[],
      ${added.map(({ item }) => JSON.stringify(item))}::text[])
      WITH ORDINALITY AS new (id, digest, body, place) ORDER BY place
    RETURNING key, id`);
  const keys = new Map(rows.map(({ key, id }) => [id, key]));
  return added.map(({ item }) => keys.get(item.id)!);
}

/** Deletes those of `keys` that nothing uses any more. */
export async function deleteOrphans(on: Statements, keys: readonly number[]): Promise<void> {
  await on.run(sql`DELETE FROM fermata.items WHERE key = ANY(${keys})
    AND NOT EXISTS (SELECT FROM fermata.response_items WHERE item = items.key)
    AND NOT EXISTS (SELECT FROM fermata.conversation_items WHERE item = items.key)`);
}
