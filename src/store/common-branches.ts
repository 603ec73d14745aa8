/** What both stores do to branched conversations with the same statements. */

import { readable, readTokens } from "./rows.ts";
import { type CommonStatements, type Query, sql } from "./sql.ts";
import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  ConversationChange,
  InterruptedRun,
  NumberedEvent,
  RunHold,
} from "./types.ts";

export interface ConversationRow {
  id: string;
  title: string;
  created_at: number;
  updated_at: number;
  leaf_id: string | null;
  settings: string;
}

interface MessageRow {
  id: string;
  parent_id: string | null;
  created_at: number;
  run_id: string | null;
  body: string;
}

interface RunRow {
  id: string;
  conversation_id: string;
  message_id: string;
}

interface EventRow {
  number: number;
  body: string;
  tokens: string | null;
}

interface HoldRow {
  request: string;
  round: string;
  resumes: number;
}

interface CallRow {
  call_id: string;
  state: string;
}

// A state is written as JSON.stringify writes it, and begins with what the call has come to.
const asked = '{"at":"asked"';
const ended = '{"at":"ended"';

export class CommonBranches {
  readonly #on: CommonStatements;

  constructor(on: CommonStatements) {
    this.#on = on;
  }

  async createConversation(owner: string, conversation: BranchedConversation): Promise<void> {
    const { id, title, createdAt, updatedAt, leafId, settings } = conversation;
    // A repetition: its first answer was lost with the connection.
    await this.#on.run(sql`INSERT INTO fermata.branched_conversations
      (owner, id, title, created_at, updated_at, leaf_id, settings)
      VALUES (${owner}, ${id}, ${title}, ${createdAt}, ${updatedAt}, ${leafId},
        ${JSON.stringify(settings)})
      ON CONFLICT (id) DO NOTHING`);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    const row = await this.#on.get<ConversationRow>(sql`SELECT *
      FROM fermata.branched_conversations WHERE owner = ${owner} AND id = ${id}`);
    return row === undefined ? null : conversationOf(row);
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    const rows = await this.#on.all<MessageRow>(sql`SELECT messages.id AS id, parent_id,
        messages.created_at AS created_at, run_id, body
      FROM fermata.branched_messages AS messages
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE owner = ${owner} AND conversation_id = ${id} ORDER BY position`);
    return rows.map(messageOf);
  }

  async changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean> {
    return (await this.#on.run(changing(owner, id, change, updatedAt))) > 0;
  }

  async callOfRun(owner: string, callId: string): Promise<"asked" | "past" | null> {
    return await callOfRun(this.#on, owner, callId);
  }

  async countResume(runId: string, by: 1 | -1 = 1): Promise<void> {
    await this.#on.run(sql`UPDATE fermata.branched_holds
      SET resumes = resumes + CAST(${by} AS integer) WHERE run_id = ${runId}`);
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const row = await this.#on.get<RunRow>(sql`SELECT started.id AS id, conversation_id, message_id
      FROM fermata.branched_runs AS started
      JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
      WHERE owner = ${owner} AND conversation_id = ${conversationId} AND started.id = ${runId}`);
    return row === undefined ? null : runOf(row);
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return await this.#on.all<NumberedEvent>(sql`SELECT number, body FROM fermata.branched_events
      WHERE run_id = ${runId} AND number > ${after} ORDER BY number`);
  }
}

/** See `BranchStore`. @param decided the id of a question that is over, though the run could not write it down */
export async function callOfRun(
  on: CommonStatements,
  owner: string,
  callId: string,
  decided?: string,
): Promise<"asked" | "past" | null> {
  const rows = await on.all<{ key: string; state: string }>(sql`SELECT call_id AS key,
      CASE WHEN substr(state, 1, ${asked.length}) = ${asked} THEN state
        ELSE substr(state, 1, ${ended.length}) END AS state
    FROM fermata.held_calls
    JOIN fermata.branched_runs AS started ON started.id = holder AND process IS NOT NULL
    JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
    WHERE owner = ${owner}`);
  const states = new Map(rows.map(({ key, state }) => [key, state]));
  const own = rows.filter(
    ({ key }) =>
      (key === callId || key.endsWith(`/${callId}`)) &&
      delegationsAbove(key).every((above) => states.get(above) !== ended),
  );
  if (own.length === 0) return null;
  const isAsked = own.some(
    ({ state }) =>
      state.startsWith(asked) &&
      (decided === undefined || (JSON.parse(state) as { askingId?: string }).askingId !== decided),
  );
  return isAsked ? "asked" : "past";
}

/** The keys of the delegations that a sub-agent's call is below: see `keyBelow`. */
function delegationsAbove(key: string): string[] {
  const parts = key.split("/");
  return parts
    .flatMap((_, index) => (index % 2 === 0 ? [parts.slice(0, index + 1).join("/")] : []))
    .slice(0, -1);
}

/** The statements that read an interrupted run, each with its rows. */
export function* reading(runId: string): Generator<Query<string>, InterruptedRun, unknown[]> {
  const [run] = (yield sql`SELECT started.id AS id, conversation_id, message_id, owner
    FROM fermata.branched_runs AS started
    JOIN fermata.branched_conversations AS conversations ON conversations.id = conversation_id
    WHERE started.id = ${runId}`) as (RunRow & { owner: string })[];
  const events = (yield sql`SELECT number, body, tokens FROM fermata.branched_events
    WHERE run_id = ${runId} ORDER BY number`) as EventRow[];
  const [hold] = (yield sql`SELECT request, round, resumes FROM fermata.branched_holds
    WHERE run_id = ${runId}`) as HoldRow[];
  const calls = (yield sql`SELECT call_id, state FROM fermata.held_calls
    WHERE holder = ${runId}`) as CallRow[];
  const known = { ...runOf(run!), owner: run!.owner };
  const goesOn = readable(() => ({
    events: events.map(({ tokens, ...event }) => ({ ...event, tokens: readTokens(tokens) })),
    hold: hold === undefined ? null : holdOf(hold, calls),
  }));
  // It ends with what was said.
  const ends = { events: events.map(({ number, body }) => ({ number, body })), hold: null };
  return { ...known, ...(goesOn ?? ends) };
}

/** The statements of `beginRun`. */
export function* beginning(
  owner: string,
  run: BranchedRun & Pick<RunHold, "request"> & { processId: string },
  messages: readonly BranchedMessage[],
  change: ConversationChange,
): Generator<Query<string | number | null>, void, void> {
  const { id: runId, conversationId, messageId, request, processId } = run;
  for (const { id, parentId, createdAt, runId: writer, body } of messages)
    yield sql`INSERT INTO fermata.branched_messages
      (id, conversation_id, parent_id, created_at, run_id, body)
      VALUES (${id}, ${conversationId}, ${parentId}, ${createdAt}, ${writer},
        ${JSON.stringify(body)})`;
  yield sql`INSERT INTO fermata.branched_runs (id, conversation_id, message_id, process)
    VALUES (${runId}, ${conversationId}, ${messageId}, ${processId})`;
  yield sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
    VALUES (${runId}, ${JSON.stringify(request)}, 'null', 0)`;
  yield changing(owner, conversationId, change, messages.at(-1)!.createdAt);
}

/** The statements of `setRunHold`. */
export function* holding(
  runId: string,
  { request, round }: Pick<RunHold, "request" | "round">,
): Generator<Query<string>, void, void> {
  yield sql`DELETE FROM fermata.held_calls WHERE holder = ${runId}`;
  yield sql`INSERT INTO fermata.branched_holds (run_id, request, round, resumes)
    VALUES (${runId}, ${JSON.stringify(request)}, ${JSON.stringify(round)}, 0)
    ON CONFLICT (run_id) DO UPDATE SET round = excluded.round, resumes = 0`;
}

/** The statements of `endRun`, for a run of this process. */
export function* ending(
  runId: string,
  { id, body }: Pick<BranchedMessage, "id" | "body">,
  events: readonly NumberedEvent[],
): Generator<Query<string | number>, void, void> {
  yield sql`UPDATE fermata.branched_runs SET process = NULL WHERE id = ${runId}`;
  for (const event of events)
    yield sql`INSERT INTO fermata.branched_events (run_id, number, body)
      VALUES (${runId}, ${event.number}, ${event.body})`;
  yield sql`DELETE FROM fermata.branched_holds WHERE run_id = ${runId}`;
  yield sql`UPDATE fermata.branched_messages SET body = ${JSON.stringify(body)} WHERE id = ${id}`;
}

function changing(
  owner: string,
  id: string,
  { title, leafId, settings }: ConversationChange,
  updatedAt: number,
): Query<string | number | null> {
  const text = settings === undefined ? null : JSON.stringify(settings);
  return sql`UPDATE fermata.branched_conversations
    SET title = coalesce(${title ?? null}, title),
      leaf_id = CASE WHEN ${leafId === undefined ? "stays" : "changes"} = 'stays' THEN leaf_id
        ELSE ${leafId ?? null} END,
      settings = coalesce(${text}, settings), updated_at = ${updatedAt}
    WHERE owner = ${owner} AND id = ${id}`;
}

export function conversationOf(row: ConversationRow): BranchedConversation {
  return {
    id: row.id,
    title: row.title,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    leafId: row.leaf_id,
    settings: JSON.parse(row.settings) as Record<string, unknown>,
  };
}

function holdOf({ request, round, resumes }: HoldRow, calls: readonly CallRow[]): RunHold {
  return {
    request: JSON.parse(request),
    round: JSON.parse(round),
    calls: Object.fromEntries(calls.map(({ call_id: id, state }) => [id, JSON.parse(state)])),
    resumes,
  };
}

function messageOf(row: MessageRow): BranchedMessage {
  return {
    id: row.id,
    parentId: row.parent_id,
    createdAt: row.created_at,
    runId: row.run_id,
    body: JSON.parse(row.body) as Record<string, unknown>,
  };
}

function runOf(row: RunRow): BranchedRun {
  return { id: row.id, conversationId: row.conversation_id, messageId: row.message_id };
}
