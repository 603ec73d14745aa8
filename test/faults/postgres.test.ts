// The database is killed under load: what was acknowledged is there afterwards, once, and the server goes on. Needs
// `npm run build`, and Postgres. FERMATA_FAULTS=long kills it 50 times.
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { kill, post, startServer } from "../integrity/support/killed-server.ts";
import { onDatabase, postgresServer } from "../support/postgres-server.ts";
import { times, told } from "./support/injections.ts";

const database = await postgresServer();
const clients = 4;

interface Kept {
  id: string;
  object: string;
  status?: string;
  [key: string]: unknown;
}

test.skipIf(database === null)(
  "SIGKILL of Postgres while clients store",
  { timeout: 900_000 },
  async () => {
    const address = await database!.emptyDatabase();
    const { server, url } = await startServer(address);
    const kills = times(3, 50);
    /** By their paths, as they were told. */
    const acknowledged = new Map<string, Kept>();
    /** How many items each conversation was told to have. */
    const lengths = new Map<string, number>();
    let unavailable = 0;
    let isOver = false;
    const client = async (number: number): Promise<void> => {
      const { id } = await post<Kept>(`${url}/v1/conversations`, { items: [] });
      for (let turn = 0; !isOver; turn++) {
        try {
          const response = await post<Kept>(`${url}/v1/responses`, { input: `${number} ${turn}` });
          acknowledged.set(`responses/${response.id}`, response);
          const content = [{ type: "input_text", text: `${number} ${turn}` }];
          const items = [{ type: "message", role: "user", content }];
          await post(`${url}/v1/conversations/${id}/items`, { items });
          lengths.set(id, (lengths.get(id) ?? 0) + 1);
        } catch (error) {
          // A refusal says so; that the server itself is gone is another error.
          expect(String(error)).toContain("store_unavailable");
          unavailable += 1;
          lengths.delete(id);
          return;
        }
      }
    };
    const work = Array.from({ length: clients }, (_, number) => client(number));
    try {
      for (let count = 0; count < kills; count++) {
        const known = acknowledged.size;
        while (acknowledged.size < known + 2) await setTimeout(5);
        await setTimeout(Math.random() * 100);
        await database!.kill();
        await database!.start();
      }
      isOver = true;
      await Promise.all(work);
      for (const [path, kept] of acknowledged)
        expect(await (await fetch(`${url}/v1/${path}`)).json()).toEqual(kept);
      // Nothing was done twice, though its first answer was lost with the connection.
      for (const [id, length] of lengths) {
        const [row] = await onDatabase<{ n: string }>(
          address,
          `SELECT count(*) AS n FROM fermata.conversation_items WHERE conversation_id = '${id}'`,
        );
        expect(Number(row!.n), id).toBe(length);
      }
      expect(unavailable).toBe(0);
      told("Postgres is killed", kills);
      console.log(`${acknowledged.size} responses acknowledged, none lost`);
    } finally {
      isOver = true;
      await Promise.allSettled(work);
      await kill(server);
    }
  },
);
