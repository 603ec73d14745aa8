/** Rows of responses and their events as both databases have them, and what they stand for. */

import { Given } from "./sql.ts";
import type {
  NumberedEvent,
  ResponseHold,
  ResponseItems,
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

/** With JSON texts; `body` is the response's. */
export type ResponseHoldRow = Omit<ResponseHold, "request" | "round"> &
  Record<"request" | "round" | "body", string>;

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

/** @param items of the response. Undefined: some of it is no JSON. */
export function responseHoldOf(
  { request, round, body, ...row }: ResponseHoldRow,
  items: readonly string[],
): ResponseHold | undefined {
  return readable(() => {
    for (const text of [body, ...items]) JSON.parse(text);
    return { ...row, request: JSON.parse(request), round: JSON.parse(round) };
  });
}

/** Undefined: a row has a text that is no JSON. The database can be read; the other rows count. */
export function readable<Read>(read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A table `given` of events. */
export function eventRows(events: readonly NumberedEvent[]): Given {
  return new Given(
    { given_number: "bigint", given_body: "text", given_tokens: "text" },
    events.map(({ number, body, tokens = [] }) => [
      number,
      body,
      tokens.length === 0 ? null : JSON.stringify(tokens),
    ]),
  );
}

export function readTokens(column: string | null): readonly number[] | undefined {
  return column === null ? undefined : (JSON.parse(column) as number[]);
}
