/** The tables of the Postgres database, brought up to date: a step a version, and a step that was released never changes. */

import { FermataError } from "../../errors.ts";
import type pg from "pg";
import { plainAddress } from "./address.ts";
import { run, sql, type Work } from "../sql.ts";
import { Connection } from "./database.ts";
import { isConnectionLost, storeUnavailable } from "./failures.ts";

/** Of advisory locks: what Fermata locks in a database that others may use too. */
export const lockClass = 0x6665726d;
/** Processes have the locks of their numbers, which begin at 1. */
const migrationLock = 0;
export const retentionLock = -1;

/** Until the transaction ends. */
export function* lockItems(owner: string): Work<void> {
  yield* run(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`items of ${owner}`}, 0))`);
}

const migrations: readonly string[] = [
  `
  -- Processes that have the database open. Each holds the advisory lock of its number.
  CREATE TABLE fermata.processes (
    id text PRIMARY KEY,
    number integer GENERATED ALWAYS AS IDENTITY,
    -- Machine, boot and container in which the process has its number, and when it began there.
    place text NOT NULL,
    pid integer NOT NULL,
    began text,
    seen_at timestamptz NOT NULL DEFAULT now()
  );
  -- Transactions that were committed, and what came of them: for a process that lost its connection meanwhile.
  CREATE TABLE fermata.writes (
    id uuid PRIMARY KEY,
    result text NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX writes_by_age ON fermata.writes (written_at);
  CREATE TABLE fermata.items (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL,
    id text NOT NULL,
    digest text NOT NULL,
    body text NOT NULL,
    UNIQUE (owner, id)
  );
  CREATE INDEX items_by_digest ON fermata.items (owner, digest);
  CREATE TABLE fermata.responses (
    id text PRIMARY KEY,
    row bigint GENERATED ALWAYS AS IDENTITY,
    owner text NOT NULL,
    created_at bigint NOT NULL,
    -- Null once it is finished; else the process that is at work on it.
    run text,
    -- Grows with each process that takes it over: what an earlier one still writes is refused.
    claim integer NOT NULL DEFAULT 1,
    previous_response_id text,
    conversation_id text,
    body text NOT NULL
  );
  CREATE INDEX responses_by_age ON fermata.responses (owner, created_at, row);
  CREATE INDEX responses_by_run ON fermata.responses (run) WHERE run IS NOT NULL;
  CREATE TABLE fermata.response_items (
    response_id text NOT NULL REFERENCES fermata.responses (id) ON DELETE CASCADE,
    -- 0: history, 1: input, 2: output
    part smallint NOT NULL,
    position integer NOT NULL,
    item bigint NOT NULL REFERENCES fermata.items (key),
    PRIMARY KEY (response_id, part, position)
  );
  CREATE INDEX response_items_by_item ON fermata.response_items (item);
  CREATE TABLE fermata.response_events (
    response_id text NOT NULL REFERENCES fermata.responses (id) ON DELETE CASCADE,
    number integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (response_id, number)
  );
  CREATE TABLE fermata.response_holds (
    response_id text PRIMARY KEY REFERENCES fermata.responses (id) ON DELETE CASCADE,
    request text NOT NULL,
    round text NOT NULL,
    next integer NOT NULL,
    deadline double precision NOT NULL
  );
  CREATE TABLE fermata.conversations (
    id text PRIMARY KEY,
    row bigint GENERATED ALWAYS AS IDENTITY,
    owner text NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    metadata text NOT NULL
  );
  CREATE TABLE fermata.conversation_items (
    conversation_id text NOT NULL REFERENCES fermata.conversations (id) ON DELETE CASCADE,
    position integer NOT NULL,
    item bigint NOT NULL REFERENCES fermata.items (key),
    PRIMARY KEY (conversation_id, position)
  );
  CREATE INDEX conversation_items_by_item ON fermata.conversation_items (item);
  CREATE TABLE fermata.branched_conversations (
    id text PRIMARY KEY,
    row bigint GENERATED ALWAYS AS IDENTITY,
    owner text NOT NULL,
    title text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    leaf_id text,
    settings text NOT NULL
  );
  CREATE INDEX branched_conversations_by_use
    ON fermata.branched_conversations (owner, updated_at, row);
  CREATE TABLE fermata.branched_messages (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    conversation_id text NOT NULL
      REFERENCES fermata.branched_conversations (id) ON DELETE CASCADE,
    parent_id text,
    created_at bigint NOT NULL,
    run_id text,
    body text NOT NULL
  );
  CREATE INDEX branched_messages_by_conversation ON fermata.branched_messages (conversation_id);
  CREATE TABLE fermata.branched_runs (
    id text PRIMARY KEY,
    conversation_id text NOT NULL
      REFERENCES fermata.branched_conversations (id) ON DELETE CASCADE,
    message_id text NOT NULL,
    -- Null once it has ended; else the process that is at work on it.
    process text,
    claim integer NOT NULL DEFAULT 1
  );
  CREATE INDEX branched_runs_by_conversation ON fermata.branched_runs (conversation_id);
  CREATE INDEX branched_runs_by_process ON fermata.branched_runs (process)
    WHERE process IS NOT NULL;
  CREATE TABLE fermata.branched_events (
    run_id text NOT NULL REFERENCES fermata.branched_runs (id) ON DELETE CASCADE,
    number integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, number)
  );
  CREATE TABLE fermata.branched_holds (
    run_id text PRIMARY KEY REFERENCES fermata.branched_runs (id) ON DELETE CASCADE,
    request text NOT NULL,
    round text NOT NULL,
    resumes integer NOT NULL
  );
  -- What calls have come to that outlive their process. The holder is the held run or the response that made them.
  CREATE TABLE fermata.held_calls (
    holder text NOT NULL,
    call_id text NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (holder, call_id)
  );
  CREATE INDEX held_calls_by_call ON fermata.held_calls (call_id);
  CREATE FUNCTION fermata.forget_held_calls() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_TABLE_NAME = 'branched_holds' THEN
        DELETE FROM fermata.held_calls WHERE holder = OLD.run_id;
      ELSE
        DELETE FROM fermata.held_calls WHERE holder = OLD.id;
      END IF;
      RETURN NULL;
    END $$;
  CREATE TRIGGER held_calls_of_run AFTER DELETE ON fermata.branched_holds
    FOR EACH ROW EXECUTE FUNCTION fermata.forget_held_calls();
  CREATE TRIGGER held_calls_of_response AFTER DELETE ON fermata.responses
    FOR EACH ROW EXECUTE FUNCTION fermata.forget_held_calls();
  CREATE TABLE fermata.secrets (
    name text PRIMARY KEY,
    value bytea NOT NULL
  );
  `,
  `
  -- Calls that wait for a person, by the process that asks. Where it is gone, whoever goes on with its run asks again.
  CREATE TABLE fermata.questions (
    process text NOT NULL,
    call_id text NOT NULL,
    owner text NOT NULL,
    body text NOT NULL,
    is_open boolean NOT NULL DEFAULT true,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (process, call_id)
  );
  CREATE INDEX questions_by_call ON fermata.questions (owner, call_id);
  -- What one process hands to another. Its sender deletes it.
  CREATE TABLE fermata.deliveries (
    id text PRIMARY KEY,
    -- The response or the call that it is for.
    about text NOT NULL,
    body text NOT NULL,
    -- Null: nobody has taken it yet.
    answer text,
    sent_at timestamptz NOT NULL DEFAULT now()
  );
  `,
  `
  ALTER TABLE fermata.branched_events ADD COLUMN tokens text;
  ALTER TABLE fermata.response_events ADD COLUMN tokens text;
  ALTER TABLE fermata.response_holds ADD COLUMN resumes integer NOT NULL DEFAULT 0;
  `,
];

/** @throws FermataError store_invalid: a later Fermata wrote it, or it may not be used | store_unavailable */
export async function migrate(client: pg.ClientBase, address: string): Promise<void> {
  const on = new Connection(client);
  try {
    await on.run(sql`BEGIN`);
    // One after the other, where several processes start.
    await on.run(sql`SELECT pg_advisory_xact_lock(${lockClass}, ${migrationLock})`);
    const [isNew] = await on.column<boolean>(
      sql`SELECT to_regclass('fermata.schema_version') IS NULL`,
    );
    if (isNew === true) {
      await client.query("CREATE SCHEMA IF NOT EXISTS fermata");
      await client.query("CREATE TABLE fermata.schema_version (version integer NOT NULL)");
      await client.query("INSERT INTO fermata.schema_version VALUES (0)");
    }
    const [version = 0] = await on.column<number>(sql`SELECT version FROM fermata.schema_version`);
    if (version > migrations.length) {
      const message = `The store has version ${version}, and this Fermata knows ${migrations.length}. Use a later Fermata or another --store.`;
      throw new FermataError("store_invalid", message);
    }
    for (const step of migrations.slice(version)) await client.query(step);
    await on.run(sql`UPDATE fermata.schema_version SET version = ${migrations.length}`);
    await on.run(sql`COMMIT`);
  } catch (error) {
    throw openingFailure(error, address);
  }
}

/** What `--store` and its reader can do about it. */
export function openingFailure(error: unknown, address: string): unknown {
  if (error instanceof FermataError) return error;
  const place = plainAddress(address);
  const { message: problem } = error as Error;
  if (isConnectionLost(error)) {
    const { code } = storeUnavailable(error);
    const message = `The store ${place} cannot be reached: ${problem}. Start the database, or name another --store.`;
    return new FermataError(code, message, { param: "store", cause: error });
  }
  const message = `The store ${place} cannot be used: ${problem}. Name another --store, or serve without one if it cannot be opened: --store-optional.`;
  return new FermataError("store_invalid", message, { param: "store", cause: error });
}
