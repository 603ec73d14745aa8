/** Cross-origin requests: refused by every browser unless the operator names the origins. */

import type { FastifyInstance, FastifyReply } from "fastify";

const preflightSeconds = 600;
const exposedHeaders = "x-request-id, retry-after, x-fermata-history-gap";

/** @param origins as browsers send them (`https://app.example`), or `*` for all. Empty: no header is sent. */
export function installCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const all = origins.includes("*");
  // Before the keys are asked for: a browser sends none with a preflight.
  app.addHook("onRequest", async (request, reply) => {
    const { origin } = request.headers;
    reply.header("vary", "origin");
    if (origin === undefined || !(all || origins.includes(origin))) return;
    reply.header("access-control-allow-origin", all ? "*" : origin);
    reply.header("access-control-expose-headers", exposedHeaders);
    const method = request.headers["access-control-request-method"];
    if (request.method === "OPTIONS" && method !== undefined) {
      return answerPreflight(reply, request.headers["access-control-request-headers"]);
    }
  });
}

function answerPreflight(reply: FastifyReply, headers: string | undefined): FastifyReply {
  if (headers !== undefined) reply.header("access-control-allow-headers", headers);
  return reply
    .header("access-control-allow-methods", "GET, POST, PATCH, DELETE")
    .header("access-control-max-age", preflightSeconds)
    .code(204)
    .send();
}
