/** What stands for an API key: a cookie for the page, short-lived tokens for streams. */

import type { Route } from "../route.ts";
import { answer, string, whole } from "../body/shapes.ts";
import { sessionCookie } from "../http/access.ts";
import type { SealedTokens } from "../http/sealed-tokens.ts";

const sessionSeconds = 30 * 24 * 3600;
const attributes = "Path=/; HttpOnly; SameSite=Strict";

/** POST and DELETE /api/session: a cookie that stands for the API key, for a page that must not keep it. */
export function openSessionRoute(tokens: SealedTokens): Route {
  return {
    at: "POST /api/session",
    summary: "Sets a cookie that stands for the API key.",
    answer: answer({ expires_at: whole }),
    handler: async (request, reply) => {
      const expiresAt = Math.floor(Date.now() / 1000) + sessionSeconds;
      const token = tokens.seal({ kind: "session", owner: request.owner, expiresAt });
      reply.header(
        "set-cookie",
        `${sessionCookie}=${token}; Max-Age=${sessionSeconds}; ${attributes}`,
      );
      return { expires_at: expiresAt };
    },
  };
}

export function closeSessionRoute(): Route {
  return {
    at: "DELETE /api/session",
    summary: "Takes the cookie back.",
    status: 204,
    answer: null,
    handler: async (_request, reply) => {
      reply.header("set-cookie", `${sessionCookie}=; Max-Age=0; ${attributes}`);
      return reply.code(204).send();
    },
  };
}

/** Long enough for the connections of one run; an address may end up in a log. */
const tokenSeconds = 10 * 60;

/** POST /api/stream-tokens: a short-lived token for `?token=`, since an EventSource sends no header. */
export function streamTokensRoute(tokens: SealedTokens): Route {
  return {
    at: "POST /api/stream-tokens",
    summary: "A short-lived token for `?token=`, for clients that send no header.",
    answer: answer({ token: string, expires_at: whole }),
    handler: async (request) => {
      const expiresAt = Math.floor(Date.now() / 1000) + tokenSeconds;
      const token = tokens.seal({ kind: "stream", owner: request.owner, expiresAt });
      return { token, expires_at: expiresAt };
    },
  };
}
