/**
 * Bodies that were in flight when the engine's process died. What was so once is a suspect: suspects run one
 * after the other, so that the next death tells which of them it was. What was so twice is refused.
 */

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { FermataError } from "../../errors.ts";

/** Deaths by hashes of bodies. */
export type Crashes = Map<string, number>;

const crashesToRefuse = 2;
/** A suspect may stream for long: the next one does not wait for ever. */
const maxTurnMs = 600_000;

declare module "fastify" {
  interface FastifyRequest {
    /** Of a body that was read, where deaths are counted. */
    bodyHash: string | null;
  }
}

/** Before the reports of connections: what waits for its turn here is not in flight. */
export function installQuarantine(app: FastifyInstance, crashes: Crashes): void {
  app.decorateRequest("bodyHash", null);
  let lastTurn: Promise<unknown> = Promise.resolve();
  app.addHook("preValidation", async (request, reply) => {
    const hash = request.bodyHash;
    const count = hash === null ? 0 : (crashes.get(hash) ?? 0);
    if (hash === null || count === 0) return;
    if (count >= crashesToRefuse) throw quarantined();
    const ended = once(reply.raw, "close").catch(() => {});
    const turn = lastTurn;
    lastTurn = turn.then(() => Promise.race([ended, setTimeout(maxTurnMs, null, { ref: false })]));
    await turn;
  });
  app.addHook("onResponse", async ({ bodyHash: hash }, { statusCode, raw }) => {
    if (hash !== null && statusCode < 400 && raw.writableFinished) crashes.delete(hash);
  });
}

function quarantined(): FermataError {
  return new FermataError(
    "request_quarantined",
    "The engine ended abnormally twice while it worked on this body, so the body is refused until Fermata is started again. Change the request, and report it with the log.",
    { param: "body" },
  );
}
