/** Calls that wait for a person, shown by the processes that ask. */

import type { QuestionState } from "../types.ts";
import { sql, type Statements } from "./database.ts";

interface Question {
  owner: string;
  callId: string;
}

export async function openQuestion(
  on: Statements,
  process: string,
  { owner, callId }: Question,
  body: unknown,
): Promise<void> {
  await on.run(sql`INSERT INTO fermata.questions (process, call_id, owner, body)
    VALUES (${process}, ${callId}, ${owner}, ${JSON.stringify(body)})
    ON CONFLICT (process, call_id) DO UPDATE SET owner = excluded.owner, body = excluded.body,
      is_open = true, changed_at = now()`);
}

export async function closeQuestion(
  on: Statements,
  process: string,
  callId: string,
): Promise<void> {
  await on.run(sql`UPDATE fermata.questions SET is_open = false, changed_at = now()
    WHERE process = ${process} AND call_id = ${callId}`);
}

/** Those of other processes, the oldest first. */
export async function openQuestions(
  on: Statements,
  process: string,
  owner: string,
): Promise<unknown[]> {
  const bodies = await on.column<string>(sql`SELECT body FROM fermata.questions
    JOIN fermata.processes ON processes.id = process
    WHERE owner = ${owner} AND is_open AND process <> ${process} ORDER BY changed_at`);
  return bodies.map((body) => JSON.parse(body) as unknown);
}

export async function questionState(
  on: Statements,
  { owner, callId }: Question,
): Promise<QuestionState | null> {
  const [state] = await on.column<QuestionState>(sql`SELECT CASE
      WHEN is_open AND processes.id IS NOT NULL THEN 'open'
      WHEN is_open THEN 'left'
      ELSE 'closed' END
    FROM fermata.questions LEFT JOIN fermata.processes ON processes.id = process
    WHERE owner = ${owner} AND call_id = ${callId}
    ORDER BY is_open AND processes.id IS NOT NULL DESC, is_open, changed_at DESC LIMIT 1`);
  return state ?? null;
}
