/** Which web pages may call this server: those of other origins only where the operator names them. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";
import { historyGapHeader } from "./history-gaps.ts";
import { missingServersHeader } from "./missing-servers.ts";
import { hasJsonType } from "./json-body.ts";
import { isIP } from "node:net";
import { hostname } from "node:os";

const preflightSeconds = 600;
const exposedHeaders = `x-request-id, retry-after, ${historyGapHeader}, ${missingServersHeader}`;

/** @param origins as browsers send them (`https://app.example`), or `*` for all. Empty: no header is sent. */
export function installCors(app: FastifyInstance, origins: readonly string[]): void {
  const all = origins.includes("*");
  if (!all) refuseUnasked(app, origins);
  if (origins.length === 0) return;
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

/**
 * A page of any site may send a form or a text without a preflight. It cannot read the answer, but what it asked
 * for would be done.
 */
function refuseUnasked(app: FastifyInstance, origins: readonly string[]): void {
  app.addHook("onRequest", async (request) => {
    if (request.method !== "POST" || hasJsonType(request) || !isOfOtherSite(request)) return;
    if (origins.includes(request.headers.origin ?? "")) return;
    const remedy =
      'Send JSON with the header "content-type: application/json", and allow the page\'s origin with --cors-origin';
    const message = `A page of another site may not send a form or a text. ${remedy}.`;
    throw new FermataError("unsupported_media_type", message, { param: "content-type" });
  });
}

/** Programs that are no browsers send neither header. */
function isOfOtherSite({ headers }: FastifyRequest): boolean {
  const { origin, host, "sec-fetch-site": site = "none" } = headers;
  if (site !== "none" && site !== "same-origin") return true;
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}

function answerPreflight(reply: FastifyReply, headers: string | undefined): FastifyReply {
  if (headers !== undefined) reply.header("access-control-allow-headers", headers);
  return reply
    .header("access-control-allow-methods", "GET, POST, PATCH, DELETE")
    .header("access-control-max-age", preflightSeconds)
    .code(204)
    .send();
}

/** Never registered: of this machine, of its network, of containers that run on it. */
const localName = /\.(?:localhost|local|internal|home\.arpa|test)$/;

/**
 * A web page can have its own name lead to this machine (DNS rebinding): the browser then takes the server for
 * the page's own and lets it call tools and read answers. So a server that asks for no key answers to names
 * alone that no page can have, wherever it listens: a container's published port leads here from its host.
 * @param origins that may call; their hosts may be this server's names
 */
export function installHostNames(
  app: FastifyInstance,
  apiKeys: readonly string[],
  origins: readonly string[],
): void {
  if (apiKeys.length > 0 || origins.includes("*")) return;
  const hosts = origins.filter((origin) => URL.canParse(origin));
  const known = new Set([hostname().toLowerCase(), ...hosts.map((url) => new URL(url).hostname)]);
  app.addHook("onRequest", async (request) => {
    const name = nameOf(request);
    if (name === null || known.has(name) || isLocal(name)) return;
    const remedy = `Use localhost, start the server with --api-key, or allow the name with --cors-origin http://${name}`;
    const message = `Without an API key this server does not answer to the name "${name}". ${remedy}.`;
    throw new FermataError("host_not_allowed", message, { param: "host" });
  });
}

/** Null: a client that says no name is no browser. */
function nameOf({ headers }: FastifyRequest): string | null {
  const url = `http://${headers.host ?? ""}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "").slice(0, 253) : null;
}

function isLocal(name: string): boolean {
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || !name.includes(".") || localName.test(name);
}
