/** API keys: `Authorization: Bearer …` or `x-api-key`. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";

/** Routes that need no key: a load balancer asks them. */
const openPaths = new Set(["/health"]);

/** No keys: everybody may come in. */
export function installAuthentication(app: FastifyInstance, apiKeys: readonly string[]): void {
  if (apiKeys.length === 0) return;
  const hashes = apiKeys.map(hash);
  app.addHook("onRequest", async (request) => {
    if (openPaths.has(request.routeOptions.url ?? "")) return;
    const key = givenKey(request);
    const remedy = 'Send the header "Authorization: Bearer <key>".';
    if (key === null) throw new FermataError("unauthorized", `An API key is needed. ${remedy}`);
    const given = hash(key);
    // All are compared, so that the time taken tells nothing.
    const matches = hashes.filter((known) => timingSafeEqual(known, given));
    if (matches.length === 0)
      throw new FermataError("unauthorized", `The API key is not known. ${remedy}`);
  });
}

/** Whose request it is, without the key itself. Callers without a key are one owner. */
export function requestOwner(request: FastifyRequest): string {
  const key = givenKey(request);
  return key === null ? "anonymous" : hash(key).toString("hex");
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
