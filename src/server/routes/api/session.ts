/** POST and DELETE /api/session: a cookie that stands for the API key, for a page that must not keep it. */

import type { RouteOptions } from "fastify";
import { requestOwner, sessionCookie } from "../../plugins/authentication.ts";
import type { SealedTokens } from "../../plugins/sealed-tokens.ts";

const sessionSeconds = 30 * 24 * 3600;
const attributes = "Path=/; HttpOnly; SameSite=Strict";

export function openSessionRoute(tokens: SealedTokens): RouteOptions {
  return {
    method: "POST",
    url: "/api/session",
    handler: async (request, reply) => {
      const expiresAt = Math.floor(Date.now() / 1000) + sessionSeconds;
      const token = tokens.seal({ kind: "session", owner: requestOwner(request), expiresAt });
      reply.header(
        "set-cookie",
        `${sessionCookie}=${token}; Max-Age=${sessionSeconds}; ${attributes}`,
      );
      return { expires_at: expiresAt };
    },
  };
}

export function closeSessionRoute(): RouteOptions {
  return {
    method: "DELETE",
    url: "/api/session",
    handler: async (_request, reply) => {
      reply.header("set-cookie", `${sessionCookie}=; Max-Age=0; ${attributes}`);
      return reply.code(204).send();
    },
  };
}
