/** Items, each stored once. Within the caller's transaction, which holds the lock of the owner's items. */

import { all, Given, run, sql, type Work } from "./sql.ts";
import type { StoredItem } from "./types.ts";
import { createHash, randomBytes } from "node:crypto";

interface ItemRow {
  key: number;
  id: string;
  digest: string;
}

/**
 * The keys of what a client sent. Known: by its id, if it says the same; else by what it says, but for one that is in
 * `history` or earlier in `items`, since a history may say the same twice. An id that stands for something else gets out
 * of its way.
 */
export function* referItems(
  owner: string,
  sent: readonly StoredItem[],
  history: Iterable<number>,
): Work<number[]> {
  if (sent.length === 0) return [];
  const items = sent.map((item) => ({ ...item, id: storableId(item.id) }));
  const digests = items.map(itemDigest);
  const rows = yield* knownItems(owner, { ids: items.map(({ id }) => id), digests });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const taken = new Set(history);
  const free = new Map<string, number[]>();
  for (const { key, digest } of rows.toReversed())
    if (!taken.has(key)) {
      const alike = free.get(digest);
      if (alike === undefined) free.set(digest, [key]);
      else alike.push(key);
    }
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
  const keys = yield* writeItems(owner, added);
  return places.map((place) => (typeof place === "number" ? place : keys[place.added]!));
}

/** The oldest first. SQLite looks at the tables of a cross join in their order, and else would read all items for each text. */
function* knownItems(
  owner: string,
  { ids, digests }: { ids: readonly string[]; digests: readonly string[] },
): Work<ItemRow[]> {
  const columnOf = (texts: readonly string[]): Given =>
    new Given(
      { text: "text" },
      Array.from(new Set(texts), (text) => [text]),
    );
  const rows = [
    ...(yield* all<ItemRow>(sql`SELECT key, id, digest
      FROM ${columnOf(ids)} CROSS JOIN fermata.items WHERE owner = ${owner} AND id = text`)),
    ...(yield* all<ItemRow>(sql`SELECT key, id, digest
      FROM ${columnOf(digests)} CROSS JOIN fermata.items WHERE owner = ${owner} AND digest = text`)),
  ];
  const byKey = new Map(rows.map((row) => [row.key, row]));
  return [...byKey.values()].toSorted((one, other) => one.key - other.key);
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
export function* putItems(owner: string, items: readonly StoredItem[]): Work<number[]> {
  const last = new Map(items.map((item) => [item.id, { item, digest: itemDigest(item) }]));
  const keys = yield* writeItems(owner, [...last.values()]);
  const byId = new Map([...last.keys()].map((id, index) => [id, keys[index]!]));
  return items.map(({ id }) => byId.get(id)!);
}

/** @param written of different ids @returns their keys */
function* writeItems(
  owner: string,
  written: readonly { item: StoredItem; digest: string }[],
): Work<number[]> {
  if (written.length === 0) return [];
  const given = new Given(
    { given_id: "text", given_digest: "text", given_body: "text" },
    written.map(({ item, digest }) => [item.id, digest, JSON.stringify(item)]),
  );
  const rows = yield* all<{ key: number; id: string }>(sql`
    INSERT INTO fermata.items (owner, id, digest, body)
    SELECT ${owner}, given_id, given_digest, given_body FROM ${given} WHERE true ORDER BY place
    ON CONFLICT (owner, id) DO UPDATE SET digest = excluded.digest, body = excluded.body
    RETURNING key, id`);
  const keys = new Map(rows.map(({ key, id }) => [id, key]));
  return written.map(({ item }) => keys.get(item.id)!);
}

/** Deletes those of `keys` that nothing uses any more. */
export function* deleteOrphans(keys: readonly number[]): Work<void> {
  const given = new Given(
    { given_key: "bigint" },
    keys.map((key) => [key]),
  );
  yield* run(sql`DELETE FROM fermata.items
    WHERE key IN (SELECT given_key FROM ${given}) AND ${isOrphan}`);
}

export const isOrphan = sql`NOT EXISTS (SELECT 1 FROM fermata.response_items WHERE item = items.key)
  AND NOT EXISTS (SELECT 1 FROM fermata.conversation_items WHERE item = items.key)`;

function freshId(id: string): string {
  return `${id.split("_", 1)[0]}_${randomBytes(24).toString("hex")}`;
}

/** A client may send any text. Databases give back no other than well-formed ones, and Postgres keeps no U+0000. */
function storableId(id: string): string {
  return Buffer.from(id).toString().replaceAll("\0", "\uFFFD");
}

/** Equal for items with the same content, whatever their ids and the fields that clients left out. */
function itemDigest(item: StoredItem): string {
  return createHash("sha256")
    .update(JSON.stringify(meaningOf(item)))
    .digest("base64url");
}

function meaningOf(item: StoredItem): unknown {
  switch (item.type) {
    case "message":
      return [item.type, item["role"], textsOf(item["content"])];
    case "reasoning":
      return [item.type, textsOf(item["content"]), item["encrypted_content"] ?? null];
    case "function_call":
      return [item.type, item["call_id"], item["name"], item["namespace"], item["arguments"]];
    case "custom_tool_call":
      return [item.type, item["call_id"], item["name"], item["namespace"], item["input"]];
    case "custom_tool_call_output":
    case "function_call_output":
      return [item.type, item["call_id"], item["output"]];
    default: {
      const { id: _id, status: _status, ...rest } = item;
      return Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
    }
  }
}

function textsOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? null;
  return content.map((part: { type?: unknown; text?: unknown }) => [part.type, part.text]);
}
