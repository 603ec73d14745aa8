// What only a database that several processes share has to do.
import { expect, test } from "vitest";
import type { NewResponse } from "../../../src/store/types.ts";
import { eventually } from "../../support/eventually.ts";
import { storeKinds, storeWorld } from "../../support/store-worlds.ts";

function response(id: string): NewResponse {
  const createdAt = Math.floor(Date.now() / 1000);
  const parts = { previousResponseId: null, conversationId: null, input: [] };
  return { id, owner: "ann", createdAt, body: { id, status: "in_progress" }, ...parts };
}

test.skipIf(!storeKinds.includes("postgres"))(
  "an end that could not be written is not written over what another process has come to since",
  async () => {
    const world = await storeWorld("postgres");
    const store = await world.open();
    const bodyOf = async (id: string) => (await store.responses.find("ann", id))!.body;
    try {
      for (const id of ["taken", "kept"]) await store.responses.create(response(id));
      await world.query("ALTER TABLE responses RENAME TO away");
      for (const id of ["taken", "kept"]) {
        const end = store.responses.update("ann", id, { id, status: "failed" }, []);
        await expect(end).rejects.toThrow("responses");
      }
      // This process was taken for dead, and another one has ended what it took.
      await world.query(`ALTER TABLE away RENAME TO responses;
        UPDATE responses SET run = NULL, claim = 2, body = '{"status":"completed"}'
          WHERE id = 'taken';
        DELETE FROM processes`);
      // One after the other, once this process has shown a sign of life.
      await eventually(async () =>
        expect(await bodyOf("kept")).toMatchObject({ status: "failed" }),
      );
      expect(await bodyOf("taken")).toEqual({ status: "completed" });
    } finally {
      await store.close();
      await world.remove();
    }
  },
);

test.skipIf(!storeKinds.includes("postgres"))(
  "who takes a response over sees what the database still wrote for the process that is gone",
  async () => {
    const world = await storeWorld("postgres");
    const gone = await world.open();
    const store = await world.open();
    const events = async () => await store.responses.events("ann", "held");
    const waits = async (reason: string): Promise<void> =>
      await eventually(async () => {
        const rows = await world.query(
          `SELECT pid FROM pg_stat_activity WHERE wait_event = '${reason}'`,
        );
        expect(rows.length).toBeGreaterThan(0);
      });
    try {
      await gone.responses.create(response("held"));
      const round = { turn: null, at: "created", fingerprint: "" };
      const hold = { owner: "ann", id: "held", request: {}, round, next: 0, deadline: 0 };
      await gone.responses.setHold(hold);
      // Its insert waits for this one, which comes to nothing.
      const other = world.query(`BEGIN; INSERT INTO response_events (response_id, number, body)
        VALUES ('held', 0, '{}'); SELECT pg_sleep(1); ROLLBACK`);
      await waits("PgSleep");
      const last = gone.responses.appendEvents("held", [{ number: 0, body: `{"type":"last"}` }]);
      await waits("transactionid");
      // As for a process that was seen to be gone.
      await world.query("UPDATE responses SET run = NULL");
      expect(await store.responses.takeHolds()).toMatchObject([{ id: "held" }]);
      const seen = await events();
      await Promise.all([other, last]);
      expect(await events()).toEqual(seen);
    } finally {
      await gone.close();
      await store.close();
      await world.remove();
    }
  },
);

test.skipIf(!storeKinds.includes("postgres"))(
  "nobody waits for a taker of what is over, and who took it at the last moment still answers",
  async () => {
    const world = await storeWorld("postgres");
    const [here, there] = [await world.open(), await world.open()];
    let looks = 0;
    const isOver = async (): Promise<boolean> => (looks++, false);
    there.shared!.onDelivery((about) => (about === "taken" ? Promise.resolve("done") : null));
    try {
      expect(await here.shared!.deliver("taken", {}, isOver)).toBe("done");
      looks = 0;
      expect(await here.shared!.deliver("left", {}, isOver)).toBeNull();
      // One a second: of what may be taken there are fifteen.
      expect(looks).toBeLessThan(6);
    } finally {
      for (const store of [here, there]) await store.close();
      await world.remove();
    }
  },
);
