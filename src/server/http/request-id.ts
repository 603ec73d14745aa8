/** Each request has an id: the client's, if it is a harmless one, else a new one. It goes back and into the log. */

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

export function installRequestId(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.header(header, request.id);
    if (request.routeOptions.config?.wire === "anthropic") reply.header("request-id", request.id);
  });
}
