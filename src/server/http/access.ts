/**
 * Who may call. Checks the host name of a request, the origin of a web page, and the API key (`Authorization: Bearer …`
 * or `x-api-key`). A page in a browser may send its session's cookie instead of a key; an EventSource of another origin
 * a short-lived token in its address.
 */

import type { FastifyInstance, FastifyRequest, FastifyReply } from "fastify";
import { FermataError } from "../../errors.ts";
import type { ApiKeys, KeyScope } from "./api-keys.ts";
import type { SealedTokens, TokenClaims } from "./sealed-tokens.ts";
import { historyGapHeader } from "./history-gaps.ts";
import { missingServersHeader } from "./stream-answer.ts";
import { hasJsonType } from "./json-body.ts";
import { isIP } from "node:net";
import type { IncomingMessage } from "node:http";
import { hostname } from "node:os";

declare module "fastify" {
  interface FastifyContextConfig {
    /** `?token=` stands for a key. */
    takesStreamToken?: boolean;
    /** Pages of other sites may not even send JSON, unless their origin is allowed. */
    refusesOtherSites?: true;
    /** The route needs no key. */
    public?: true;
    /** What the key must allow. Default: infer. */
    scope?: KeyScope;
  }
  interface FastifyRequest {
    /** A hash of its key, or of the key's name. Callers of a server without keys are one owner. */
    owner: string;
  }
}

export const sessionCookie = "fermata_session";
const nobody = "anonymous";
const remedy = 'Send the header "Authorization: Bearer <key>".';

/** Without keys everybody may call, and all callers are one owner, even if they send a key. */
export function installAuthentication(
  app: FastifyInstance,
  keys: ApiKeys,
  tokens: SealedTokens,
): void {
  app.decorateRequest("owner", nobody);
  app.addHook("onRequest", async (request) => {
    const { public: isPublic, scope = "infer" } = request.routeOptions.config ?? {};
    if (!keys.areNeeded || isPublic === true) return;
    const key = givenKey(request);
    const claims = key === null ? givenClaims(request, tokens) : null;
    // Tokens of a removed key are refused as well.
    const known = key === null ? claims && keys.ofOwner(claims.owner) : keys.withKey(key);
    if (known === null || known === "expired") {
      const unknown = known === null ? "The API key is not known." : "The API key has expired.";
      const problem = key === null ? "An API key is needed." : unknown;
      throw new FermataError("unauthorized", `${problem} ${remedy}`);
    }
    request.owner = known.owner;
    if (known.scopes.includes(scope)) return;
    const message = `The API key may not do this: it lacks the scope "${scope}". Use another key, or add the scope in --api-keys-file.`;
    throw new FermataError("scope_missing", message);
  });
}

/** Whose requests wait for each other: those of one owner or, without keys, of one address. */
export function requestClient({ owner, ip }: FastifyRequest): string {
  return owner === nobody ? ip : owner;
}

/** @throws FermataError unauthorized: the stream's token is unknown or has expired */
function givenClaims(request: FastifyRequest, tokens: SealedTokens): TokenClaims | null {
  const { token } = request.query as { token?: unknown };
  if (request.routeOptions.config?.takesStreamToken === true && typeof token === "string") {
    const claims = tokens.open(token, "stream");
    if (claims !== null) return claims;
    const message =
      "The stream token is not known or has expired. Get a new one with POST /api/stream-tokens.";
    throw new FermataError("unauthorized", message, { param: "token" });
  }
  const cookie = isSameOrigin(request) ? cookieOf(request) : null;
  return cookie === null ? null : tokens.open(cookie, "session");
}

/**
 * Browsers send cookies of one host to all its ports: another program's page is no page of ours. Behind a proxy the host
 * may be another name than the page's.
 */
function isSameOrigin({ headers }: FastifyRequest): boolean {
  const { origin, host, "sec-fetch-site": site } = headers;
  // No page can forge it.
  if (site === "same-origin") return true;
  return origin === undefined ? site !== "same-site" : isOf(origin, host);
}

function cookieOf({ headers }: FastifyRequest): string | null {
  const cookies = (headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
  const own = cookies.find((cookie) => cookie.startsWith(`${sessionCookie}=`));
  return own?.slice(sessionCookie.length + 1) ?? null;
}

function givenKey(request: FastifyRequest): string | null {
  const bearer = /^bearer +(.+)$/i.exec(request.headers.authorization ?? "");
  if (bearer !== null) return bearer[1]!.trim();
  const header = request.headers["x-api-key"];
  return typeof header === "string" && header !== "" ? header : null;
}

const preflightSeconds = 600;
const exposedHeaders = `x-request-id, retry-after, x-fermata-replica, mcp-session-id, ${historyGapHeader}, ${missingServersHeader}`;

/** @param origins as browsers send them (`https://app.example`), or `*` for all. Empty: no header is sent. */
export function installCors(app: FastifyInstance, origins: readonly string[]): void {
  const all = origins.includes("*");
  if (!all) refuseUnasked(app, origins);
  if (origins.length === 0) return;
  // Runs before the check of keys, because a browser sends no key with a preflight.
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

const socketMessage =
  "A page of another site may not open a WebSocket here. Allow its origin with --cors-origin.";

const siteMessage =
  "A page of another site may not call this path. Allow its origin with --cors-origin.";

/**
 * A page of any site may send a form or a text, or open a WebSocket, without a preflight. It cannot read the answer of
 * the first two, but the server would do what it asks. MCP wants the origin checked whatever a request holds.
 */
function refuseUnasked(app: FastifyInstance, origins: readonly string[]): void {
  app.addHook("onRequest", async (request) => {
    const isSocket = isWebSocketUpgrade(request);
    const isClosed = request.routeOptions.config?.refusesOtherSites === true;
    if (!isSocket && !isClosed && (request.method !== "POST" || hasJsonType(request))) return;
    if (!isOfOtherSite(request) || origins.includes(request.headers.origin ?? "")) return;
    if (isClosed) throw new FermataError("host_not_allowed", siteMessage, { param: "origin" });
    if (isSocket) throw new FermataError("host_not_allowed", socketMessage, { param: "origin" });
    const remedy =
      'Send JSON with the header "content-type: application/json", and allow the page\'s origin with --cors-origin';
    const message = `A page of another site may not send a form or a text. ${remedy}.`;
    throw new FermataError("unsupported_media_type", message, { param: "content-type" });
  });
}

/** A handshake is a GET; a request of another kind may offer the protocol all the same. */
export function isWebSocketUpgrade({
  method,
  headers,
}: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** Programs that are no browsers send neither header. Behind a proxy the host may be another name than the page's. */
function isOfOtherSite({ headers }: FastifyRequest): boolean {
  const { origin, host, "sec-fetch-site": site = "none" } = headers;
  // No page can forge it.
  if (site === "same-origin") return false;
  if (site !== "none") return true;
  return origin !== undefined && !isOf(origin, host);
}

function isOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host;
}

function answerPreflight(reply: FastifyReply, headers: string | undefined): FastifyReply {
  if (headers !== undefined) reply.header("access-control-allow-headers", headers);
  return reply
    .header("access-control-allow-methods", "GET, POST, PATCH, DELETE")
    .header("access-control-max-age", preflightSeconds)
    .code(204)
    .send();
}

/** Nobody can register these names: they are for this machine, its network and its containers. */
const localName = /\.(?:localhost|local|internal|home\.arpa|test)$/;

/**
 * A web page can have its own name lead to this machine (DNS rebinding): the browser then takes the server for
 * the page's own and lets it call tools and read answers. So a server that asks for no key answers to names
 * alone that no page can have, wherever it listens: a container's published port leads here from its host.
 * @param origins that may call; their hosts may be this server's names. `*` names none
 */
export function installHostNames(
  app: FastifyInstance,
  keys: Pick<ApiKeys, "areNeeded">,
  origins: readonly string[],
): void {
  if (keys.areNeeded) return;
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

/** Null: the client sends no name, so it is no browser. */
function nameOf({ headers }: FastifyRequest): string | null {
  const url = `http://${headers.host ?? ""}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "").slice(0, 253) : null;
}

function isLocal(name: string): boolean {
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || !name.includes(".") || localName.test(name);
}
