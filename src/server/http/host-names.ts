/**
 * A web page can have its own name lead to this machine (DNS rebinding): the browser then takes the server for
 * the page's own and lets it call tools and read answers. So a server that asks for no key answers to names
 * alone that no page can have, wherever it listens: a container's published port leads here from its host.
 */

import { isIP } from "node:net";
import { hostname } from "node:os";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";

/** Never registered: of this machine, of its network, of containers that run on it. */
const localName = /\.(?:localhost|local|internal|home\.arpa|test)$/;

/** @param origins that may call; their hosts may be this server's names */
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
