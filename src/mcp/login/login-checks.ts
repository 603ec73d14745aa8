/** Whether the authorization server that an MCP server names is to be trusted with a login. */

import type { OAuthServerInfo } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthServer } from "../settings.ts";
import { plainText } from "../text.ts";

/**
 * RFC 8414 wants the issuer to be the address that the metadata is fetched from. Some are called otherwise (Entra for
 * several tenants, others by a name below the address). Where the name is another, all that is asked must be at the
 * address itself or below its name: else one server could show another's login page and get its code.
 * @returns why it is not to be trusted, or that what is sent to it could be read on the way. Null: it is
 */
export function distrustOf(
  server: OAuthServer,
  { authorizationServerUrl, authorizationServerMetadata }: OAuthServerInfo,
): string | null {
  const {
    issuer,
    authorization_endpoint: page,
    token_endpoint: token,
    registration_endpoint: registration,
  } = authorizationServerMetadata ?? {};
  const endpoints = [
    ["login page", page],
    ["token endpoint", token],
    ["registration endpoint", registration],
  ] as const;
  const addresses = [["authorization server", authorizationServerUrl], ...endpoints] as const;
  for (const [what, address] of addresses)
    if (address !== undefined && !isPrivate(address, server.url)) return readable(what, address);
  if (issuer === undefined) return null;
  const { issuer: expected } = server.oauth ?? {};
  const address = new URL(authorizationServerUrl);
  const name = plainText(issuer, 200);
  const problem = `the authorization server at ${plainText(address.href, 200)} calls itself ${name}`;
  if (expected !== undefined)
    return isSameIssuer(issuer, expected)
      ? null
      : `${problem}, and "issuer" in "oauth" of the MCP configuration is another`;
  if (isSameIssuer(issuer, address.href)) return null;
  const stray = endpoints.find(
    ([, endpoint]) => endpoint !== undefined && !isAtOrBelow(new URL(endpoint), address),
  );
  if (stray === undefined) return null;
  const remedy = `If that is right, add "issuer": "${name}" to "oauth" of the MCP configuration`;
  return `${problem}, and its ${stray[0]} is elsewhere. ${remedy}`;
}

/**
 * Whoever reads the code of a login on its way must not get a token for it. So MCP wants the metadata to say that PKCE is checked, by
 * S256. A server without metadata follows MCP's first version, which demands PKCE of it.
 * @returns why nobody should log in there. Null: PKCE is checked
 */
export function withoutPkce(
  { oauth }: OAuthServer,
  { authorizationServerUrl, authorizationServerMetadata: metadata }: OAuthServerInfo,
): string | null {
  const methods = metadata?.code_challenge_methods_supported;
  if (metadata === undefined || methods?.includes("S256") === true) return null;
  const who = `the authorization server at ${plainText(new URL(authorizationServerUrl).href, 200)}`;
  if (methods !== undefined) return `${who} does not check PKCE with S256`;
  if (oauth?.pkce === true) return null;
  const remedy = 'If you know that it does, add "pkce": true to "oauth" of the MCP configuration';
  return `${who} does not say that it checks PKCE ("code_challenge_methods_supported"). ${remedy}`;
}

/** Names below a host's own are given by whoever has the host. */
function isAtOrBelow({ origin, protocol, hostname }: URL, address: URL): boolean {
  if (origin === address.origin) return true;
  return protocol === "https:" && hostname.endsWith(`.${address.hostname}`);
}

export function readable(what: string, address: string | URL): string {
  return `its ${what} is not https: ${plainText(new URL(address).origin, 200)}`;
}

/** A slash at the end makes no difference: addresses without a path have one when they are parsed. */
export function isSameIssuer(issuer: string, other: string): boolean {
  const plain = (text: string): string =>
    (URL.canParse(text) ? new URL(text).href : text).replace(/\/$/, "");
  return plain(issuer) === plain(other);
}

/**
 * Nobody reads on the way what is sent there. A server elsewhere cannot name this machine: it would have others'
 * programs called that listen here.
 * @param server whose login it is
 */
export function isPrivate(address: string | URL, server: string): boolean {
  const { protocol } = new URL(address);
  if (protocol === "https:") return true;
  return protocol === "http:" && isOfThisMachine(address) && isOfThisMachine(server);
}

function isOfThisMachine(address: string | URL): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(address).hostname);
}
