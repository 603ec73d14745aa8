/** What calls have come to that outlive their process, by who holds them: a run or a response. */

import type { HeldCall } from "../types.ts";
import { sql, type Statements } from "./database.ts";

/** The states by the ids of the calls. */
export async function heldCallsOf(
  on: Statements,
  holder: string,
): Promise<Record<string, unknown>> {
  const rows = await on.all<{ call_id: string; state: string }>(
    sql`SELECT call_id, state FROM fermata.held_calls WHERE holder = ${holder}`,
  );
  return Object.fromEntries(rows.map(({ call_id: id, state }) => [id, JSON.parse(state)]));
}

export async function heldCallOfResponses(
  on: Statements,
  owner: string,
  callId: string,
): Promise<HeldCall | null> {
  const row = await on.get<{ holder: string; state: string }>(sql`SELECT holder, state
    FROM fermata.held_calls JOIN fermata.responses ON responses.id = holder
    WHERE owner = ${owner} AND call_id = ${callId}`);
  return row === undefined ? null : { responseId: row.holder, state: JSON.parse(row.state) };
}
