/** POST /api/stream-tokens: a short-lived token for `?token=`, since an EventSource sends no header. */

import type { RouteOptions } from "fastify";
import { requestOwner } from "../../plugins/authentication.ts";
import type { SealedTokens } from "../../plugins/sealed-tokens.ts";

/** Long enough for the connections of one run; an address may end up in a log. */
const tokenSeconds = 10 * 60;

export function streamTokensRoute(tokens: SealedTokens): RouteOptions {
  return {
    method: "POST",
    url: "/api/stream-tokens",
    handler: async (request) => {
      const expiresAt = Math.floor(Date.now() / 1000) + tokenSeconds;
      const token = tokens.seal({ kind: "stream", owner: requestOwner(request), expiresAt });
      return { token, expires_at: expiresAt };
    },
  };
}
