/**
 * API keys: `Authorization: Bearer …` or `x-api-key`. A browser's page sends its session's cookie
 * instead, an EventSource of another origin a short-lived token in its address.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";
import type { SealedTokens, TokenClaims } from "./sealed-tokens.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** `?token=` stands for a key. */
    takesStreamToken?: boolean;
    /** The route needs no key. */
    public?: true;
  }
  interface FastifyRequest {
    /** See `requestOwner`. */
    owner: string;
  }
}

export const sessionCookie = "fermata_session";
const nobody = "anonymous";
const remedy = 'Send the header "Authorization: Bearer <key>".';

/** No keys: everybody may come in, and all are one owner, whatever key a client makes up. */
export function installAuthentication(
  app: FastifyInstance,
  apiKeys: readonly string[],
  tokens: SealedTokens,
): void {
  const hashes = apiKeys.map(hash);
  app.decorateRequest("owner", nobody);
  app.addHook("onRequest", async (request) => {
    if (hashes.length === 0 || request.routeOptions.config?.public === true) return;
    const key = givenKey(request);
    if (key !== null) {
      if (!isKnown(hash(key), hashes))
        throw new FermataError("unauthorized", `The API key is not known. ${remedy}`);
      request.owner = hash(key).toString("hex");
      return;
    }
    const claims = givenClaims(request, tokens);
    // A key that was taken back takes its tokens with it.
    if (claims === null || !isKnown(ownerHash(claims), hashes))
      throw new FermataError("unauthorized", `An API key is needed. ${remedy}`);
    request.owner = claims.owner;
  });
}

/** Whose request it is, without the key itself. Callers of a server without keys are one owner. */
export function requestOwner(request: FastifyRequest): string {
  return request.owner;
}

/** @throws FermataError unauthorized: a stream's token that is no longer good */
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

/** Browsers send cookies of one host to all its ports: another program's page is no page of ours. */
function isSameOrigin({ headers }: FastifyRequest): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return headers["sec-fetch-site"] !== "same-site";
  return URL.canParse(origin) && new URL(origin).host === host;
}

function cookieOf({ headers }: FastifyRequest): string | null {
  const cookies = (headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
  const own = cookies.find((cookie) => cookie.startsWith(`${sessionCookie}=`));
  return own?.slice(sessionCookie.length + 1) ?? null;
}

function ownerHash({ owner }: TokenClaims): Buffer {
  const bytes = Buffer.from(owner, "hex");
  return bytes.length === 32 ? bytes : Buffer.alloc(32);
}

/** All are compared, so that the time taken tells nothing. */
function isKnown(given: Buffer, hashes: readonly Buffer[]): boolean {
  return hashes.filter((known) => timingSafeEqual(known, given)).length > 0;
}

function givenKey(request: FastifyRequest): string | null {
  const bearer = /^bearer +(.+)$/i.exec(request.headers.authorization ?? "");
  if (bearer !== null) return bearer[1]!.trim();
  const header = request.headers["x-api-key"];
  return typeof header === "string" && header !== "" ? header : null;
}

function hash(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
