/** Each request has an id, which goes back and into the log, and one line in the log when it ended. */

import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";

const header = "x-request-id";
const harmlessId = /^[\w.:@/+=-]{1,128}$/;

export function createRequestId(request: Pick<IncomingMessage, "headers">): string {
  const given = request.headers[header];
  return typeof given === "string" && harmlessId.test(given)
    ? given
    : `req_${randomBytes(12).toString("hex")}`;
}

/** The id is the client's, if it is a harmless one, else a new one. */
export function installRequestId(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.header(header, request.id);
    if (request.routeOptions.config?.wire === "anthropic") reply.header("request-id", request.id);
  });
}

const maxPathLength = 200;

/** What was asked and how it went, never what was said. */
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
