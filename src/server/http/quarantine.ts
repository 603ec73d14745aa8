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
  interface FastifyInstance {
    quarantine: {
      /** Resolves when the body may run. @param ended when it has run @throws FermataError request_quarantined */
      admit(hash: string | null, ended: Promise<unknown>): Promise<void>;
      /** The body was answered. */
      release(hash: string | null): void;
    };
  }
  interface FastifyRequest {
    /** Of a body that was read, where deaths are counted. */
    bodyHash: string | null;
  }
}

/** Before the reports of connections: what waits for its turn here is not in flight. */
export function installQuarantine(app: FastifyInstance, crashes: Crashes): void {
  app.decorateRequest("bodyHash", null);
  let lastTurn: Promise<unknown> = Promise.resolve();
  app.decorate("quarantine", {
    async admit(hash: string | null, ended: Promise<unknown>): Promise<void> {
      const count = hash === null ? 0 : (crashes.get(hash) ?? 0);
      if (count === 0) return;
      if (count >= crashesToRefuse) throw quarantined();
      const turn = lastTurn;
      lastTurn = turn.then(() =>
        Promise.race([ended, setTimeout(maxTurnMs, null, { ref: false })]),
      );
      await turn;
    },
    release(hash: string | null): void {
      if (hash !== null) crashes.delete(hash);
    },
  });
  app.addHook("preValidation", async (request, reply) => {
    if (request.bodyHash === null) return;
    await app.quarantine.admit(
      request.bodyHash,
      once(reply.raw, "close").catch(() => {}),
    );
  });
  app.addHook("onResponse", async ({ bodyHash }, { statusCode, raw }) => {
    if (statusCode < 400 && raw.writableFinished) app.quarantine.release(bodyHash);
  });
}

function quarantined(): FermataError {
  return new FermataError(
    "request_quarantined",
    "The engine ended abnormally twice while it worked on this body, so the body is refused until Fermata is started again. Change the request, and report it with the log.",
    { param: "body" },
  );
}
