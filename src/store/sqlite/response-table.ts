/** Responses and the order of their items. Writing is done within the caller's transaction. */

import type { Database } from "libsql";
import type {
  NewResponse,
  ResponseHold,
  ResponseItems,
  StoredItem,
  StoredResponse,
} from "../types.ts";
import { type ItemTable, TakenItems } from "./item-table.ts";

const parts = { history: 0, input: 1, output: 2 } as const;

interface ResponseRow {
  id: string;
  run: string | null;
  previous_response_id: string | null;
  conversation_id: string | null;
  body: string;
}

const interrupted = {
  code: "server_error",
  message: "The server ended before the response was finished.",
};

export class ResponseTable {
  readonly #items: ItemTable;
  readonly #run: string;
  readonly #insert;
  readonly #insertItem;
  readonly #copyHistory;
  readonly #copyConversation;
  readonly #keysOfHistory;
  readonly #keys;
  readonly #update;
  readonly #clearOutput;
  readonly #find;
  readonly #all;
  readonly #itemRows;
  readonly #delete;
  readonly #byRun;
  readonly #addEvent;
  readonly #events;
  readonly #setHold;
  readonly #endHold;
  readonly #leaveHolds;
  readonly #freeHolds;
  readonly #take;

  constructor(database: Database, items: ItemTable, run: string) {
    this.#items = items;
    this.#run = run;
    this.#insert = database.prepare(
      `INSERT INTO responses (id, owner, created_at, run, previous_response_id, conversation_id, body)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#insertItem = database.prepare(
      "INSERT INTO response_items (response_id, part, position, item) VALUES (?, ?, ?, ?)",
    );
    this.#copyHistory = database.prepare(
      `INSERT INTO response_items (response_id, part, position, item)
       SELECT ?, 0, row_number() OVER (ORDER BY part, position) - 1, item
       FROM response_items WHERE response_id = ?`,
    );
    this.#copyConversation = database.prepare(
      `INSERT INTO response_items (response_id, part, position, item)
       SELECT ?, 0, row_number() OVER (ORDER BY position) - 1, item
       FROM conversation_items WHERE conversation_id = ?`,
    );
    this.#keysOfHistory = database.prepare(
      "SELECT item FROM response_items WHERE response_id = ? AND part = 0",
    );
    this.#keys = database.prepare("SELECT item FROM response_items WHERE response_id = ?");
    this.#update = database.prepare(
      "UPDATE responses SET body = ?, run = ? WHERE owner = ? AND id = ?",
    );
    this.#clearOutput = database.prepare(
      "DELETE FROM response_items WHERE response_id = ? AND part = 2",
    );
    this.#find = database.prepare(
      `SELECT id, run, previous_response_id, conversation_id, body
       FROM responses WHERE owner = ? AND id = ?`,
    );
    this.#all = database.prepare(
      `SELECT id, run, previous_response_id, conversation_id, body
       FROM responses WHERE owner = ? ORDER BY created_at, rowid`,
    );
    this.#itemRows = database.prepare(
      `SELECT part, items.body AS body FROM response_items JOIN items ON items.key = item
       WHERE response_id = ? ORDER BY part, position`,
    );
    this.#delete = database.prepare("DELETE FROM responses WHERE owner = ? AND id = ?");
    this.#byRun = database.prepare("SELECT owner, id, body FROM responses WHERE run = ?");
    // The response may have been deleted meanwhile.
    this.#setHold = database.prepare(
      `INSERT OR REPLACE INTO response_holds (response_id, request, next, deadline)
       SELECT id, ?, ?, ? FROM responses WHERE id = ?`,
    );
    this.#endHold = database.prepare("DELETE FROM response_holds WHERE response_id = ?");
    this.#leaveHolds = database.prepare(
      `UPDATE responses SET run = NULL
       WHERE run = ? AND id IN (SELECT response_id FROM response_holds)`,
    );
    this.#freeHolds = database.prepare(
      `SELECT owner, id, request, next, deadline
       FROM response_holds JOIN responses ON id = response_id WHERE run IS NULL`,
    );
    this.#take = database.prepare("UPDATE responses SET run = ? WHERE id = ?");
    // The response may have been deleted while it was generated.
    this.#addEvent = database.prepare(
      `INSERT INTO response_events (response_id, number, body)
       SELECT id, ?, ? FROM responses WHERE id = ?`,
    );
    this.#events = database.prepare(
      `SELECT response_events.body AS body FROM response_events
       JOIN responses ON responses.id = response_id WHERE owner = ? AND id = ? ORDER BY number`,
    );
  }

  insert(response: NewResponse): void {
    const { id, owner, createdAt, previousResponseId, conversationId, body, input } = response;
    const text = JSON.stringify(body);
    const run = isAtWork(body) ? this.#run : null;
    this.#insert.run(id, owner, createdAt, run, previousResponseId, conversationId, text);
    if (previousResponseId !== null) this.#copyHistory.run(id, previousResponseId);
    if (conversationId !== null) this.#copyConversation.run(id, conversationId);
    const taken = new TakenItems(
      (this.#keysOfHistory.all(id) as { item: number }[]).map((row) => row.item),
    );
    input.forEach((item, position) => {
      const key = this.#items.refer(owner, item, taken);
      taken.add(key);
      this.#insertItem.run(id, parts.input, position, key);
    });
  }

  update(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): void {
    const run = isAtWork(body) ? this.#run : null;
    const { changes } = this.#update.run(JSON.stringify(body), run, owner, id);
    if (changes === 0) return;
    if (run === null) this.#endHold.run(id);
    this.#clearOutput.run(id);
    output.forEach((item, position) => {
      this.#insertItem.run(id, parts.output, position, this.#items.put(owner, item));
    });
  }

  find(owner: string, id: string): (StoredResponse & { run: string | null }) | null {
    const row = this.#find.get(owner, id) as ResponseRow | undefined;
    return row === undefined ? null : storedResponse(row);
  }

  all(owner: string): StoredResponse[] {
    return (this.#all.all(owner) as ResponseRow[]).map(storedResponse);
  }

  items(owner: string, id: string): ResponseItems | null {
    if (this.#find.get(owner, id) === undefined) return null;
    const rows = this.#itemRows.all(id) as { part: number; body: string }[];
    const of = (part: number): StoredItem[] =>
      rows.filter((row) => row.part === part).map((row) => JSON.parse(row.body) as StoredItem);
    return { history: of(parts.history), input: of(parts.input), output: of(parts.output) };
  }

  delete(owner: string, id: string): boolean {
    const keys = (this.#keys.all(id) as { item: number }[]).map((row) => row.item);
    const isDeleted = this.#delete.run(owner, id).changes > 0;
    if (isDeleted) this.#items.deleteOrphans(keys);
    return isDeleted;
  }

  setHold({ id, request, next, deadline }: ResponseHold): void {
    this.#setHold.run(JSON.stringify(request), next, deadline, id);
  }

  /** What a process left that waits is nobody's from now on. */
  leaveHolds(run: string): void {
    this.#leaveHolds.run(run);
  }

  takeHolds(): ResponseHold[] {
    const rows = this.#freeHolds.all() as (Omit<ResponseHold, "request"> & { request: string })[];
    for (const { id } of rows) this.#take.run(this.#run, id);
    return rows.map((row) => ({ ...row, request: JSON.parse(row.request) as unknown }));
  }

  /** Everything that a process left unfinished, but what waits for its client. */
  failAll(run: string): void {
    this.leaveHolds(run);
    for (const row of this.#byRun.all(run) as { owner: string; id: string; body: string }[]) {
      const body = { ...JSON.parse(row.body), status: "failed", error: interrupted };
      const output = this.items(row.owner, row.id)?.output ?? [];
      this.update(row.owner, row.id, body, output.map(incomplete));
    }
  }

  addEvent(id: string, number: number, event: object): void {
    this.#addEvent.run(number, JSON.stringify(event), id);
  }

  events(owner: string, id: string): unknown[] {
    const rows = this.#events.all(owner, id) as { body: string }[];
    return rows.map(({ body }) => JSON.parse(body) as unknown);
  }
}

function storedResponse(row: ResponseRow): StoredResponse & { run: string | null } {
  return {
    id: row.id,
    run: row.run,
    previousResponseId: row.previous_response_id,
    conversationId: row.conversation_id,
    body: JSON.parse(row.body) as Record<string, unknown>,
  };
}

function isAtWork({ status }: Record<string, unknown>): boolean {
  return status === "queued" || status === "in_progress";
}

/** A call that waited for its output keeps its status: the next turn closes it. */
function incomplete(item: StoredItem): StoredItem {
  const isCall = item.type === "function_call" || item.type === "custom_tool_call";
  if (item["status"] !== "in_progress" || isCall) return item;
  return { ...item, status: "incomplete" };
}
