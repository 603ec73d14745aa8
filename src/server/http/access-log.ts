/** One line a request, when it ended: what was asked and how it went, never what was said. */

import type { FastifyInstance } from "fastify";

const maxPathLength = 200;

export function installAccessLog(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode, writableFinished } = reply.raw;
    request.log.info(
      {
        method: request.method,
        // Without the query: it is the client's, and may hold anything.
        path: request.url.split("?", 1)[0]!.slice(0, maxPathLength),
        status: statusCode,
        milliseconds: Math.round(reply.elapsedTime),
        ...(writableFinished ? {} : { aborted: true }),
      },
      "request",
    );
  });
}
