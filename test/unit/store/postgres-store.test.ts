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
    const bodyOf = async (id: string) => (await store.response("ann", id))!.body;
    try {
      for (const id of ["taken", "kept"]) await store.createResponse(response(id));
      await world.query("ALTER TABLE responses RENAME TO away");
      for (const id of ["taken", "kept"]) {
        const end = store.updateResponse("ann", id, { id, status: "failed" }, []);
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
