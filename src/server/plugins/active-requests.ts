/** Ties generations to their clients: one leaves, or the server closes, and the work stops. */

import type { FastifyInstance, FastifyReply } from "fastify";
import { FermataError } from "../../errors.ts";

export class ActiveRequests {
  readonly #controllers = new Set<AbortController>();

  /**
   * Aborted when the client goes before the whole response is out, whether it waits for the first byte
   * or reads a stream, and when the server closes.
   */
  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    this.#controllers.add(controller);
    reply.raw.once("close", () => {
      this.#controllers.delete(controller);
      if (!reply.raw.writableFinished) {
        controller.abort(new FermataError("cancelled", "The client closed the connection."));
      }
    });
    return controller.signal;
  }

  abortAll(): void {
    for (const controller of this.#controllers) {
      controller.abort(
        new FermataError("engine_closed", "The server is shutting down. Try again later."),
      );
    }
  }
}

export function installActiveRequests(app: FastifyInstance): ActiveRequests {
  const requests = new ActiveRequests();
  app.addHook("preClose", async () => requests.abortAll());
  return requests;
}
