/** Rows as both databases have them, and what they stand for. */

import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  ResponseHold,
  ResponseItems,
  RunHold,
  StoredItem,
  StoredResponse,
} from "./types.ts";

/** Of the items of a response. */
export const parts = { history: 0, input: 1, output: 2 } as const;

export interface ResponseRow {
  id: string;
  run: string | null;
  previous_response_id: string | null;
  conversation_id: string | null;
  body: string;
}

/** With JSON texts. */
export type ResponseHoldRow = Omit<ResponseHold, "request" | "round"> &
  Pick<HoldRow, "request" | "round">;

export interface ConversationRow {
  id: string;
  title: string;
  created_at: number;
  updated_at: number;
  leaf_id: string | null;
  settings: string;
}

export interface MessageRow {
  id: string;
  parent_id: string | null;
  created_at: number;
  run_id: string | null;
  body: string;
}

export interface RunRow {
  id: string;
  conversation_id: string;
  message_id: string;
}

export interface HoldRow {
  request: string;
  round: string;
  resumes: number;
}

export function storedResponse(row: ResponseRow): StoredResponse & { run: string | null } {
  return {
    id: row.id,
    run: row.run,
    previousResponseId: row.previous_response_id,
    conversationId: row.conversation_id,
    body: JSON.parse(row.body) as Record<string, unknown>,
  };
}

/** @param rows in their order */
export function itemsOfParts(
  rows: readonly { part: number | null; body: string }[],
): ResponseItems {
  const of = (part: number): StoredItem[] =>
    rows.filter((row) => row.part === part).map((row) => JSON.parse(row.body) as StoredItem);
  return { history: of(parts.history), input: of(parts.input), output: of(parts.output) };
}

export function responseHoldOf({ request, round, ...row }: ResponseHoldRow): ResponseHold {
  return { ...row, request: JSON.parse(request), round: JSON.parse(round) };
}

export function holdOf({ request, round, resumes }: HoldRow, calls: RunHold["calls"]): RunHold {
  return { request: JSON.parse(request), round: JSON.parse(round), calls, resumes };
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

export function messageOf(row: MessageRow): BranchedMessage {
  return {
    id: row.id,
    parentId: row.parent_id,
    createdAt: row.created_at,
    runId: row.run_id,
    body: JSON.parse(row.body) as Record<string, unknown>,
  };
}

export function runOf(row: RunRow): BranchedRun {
  return { id: row.id, conversationId: row.conversation_id, messageId: row.message_id };
}

/** The tokens of an event as a column. */
export function writtenTokens(tokens: readonly number[] = []): string | null {
  return tokens.length === 0 ? null : JSON.stringify(tokens);
}

export function readTokens(column: string | null): readonly number[] | undefined {
  return column === null ? undefined : (JSON.parse(column) as number[]);
}
