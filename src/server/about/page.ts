/** GET / and /c/{id}: the web page; GET /assets/{name}: what it loads. They need no key and hold no data. */

import type { FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import type { PageFile, PageFiles } from "./page-files.ts";

/** No inline script or style, nothing from elsewhere, no text that becomes HTML. */
const securityPolicy = [
  "default-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "object-src 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pageHeaders = {
  "content-security-policy": securityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Names of assets change with their content. */
const forever = "public, max-age=31536000, immutable";
const askAgain = "no-cache";

export function pageRoutes({ index, assets }: PageFiles): RouteOptions[] {
  const sendIndex = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    sendFile(index, askAgain, request, reply);
  const config = { public: true } as const;
  return [
    { method: "GET", url: "/", config, logLevel: "warn", handler: sendIndex },
    { method: "GET", url: "/c/:id", config, logLevel: "warn", handler: sendIndex },
    {
      method: "GET",
      url: "/assets/:name",
      config,
      logLevel: "warn",
      handler: async (request, reply) => {
        const { name } = request.params as { name: string };
        const file = assets.get(name);
        // A page of an earlier build asks for what is gone; loading it anew helps.
        if (file === undefined) {
          const message = "The page has no such file. Load the page again.";
          throw new FermataError("not_found", message);
        }
        return sendFile(file, forever, request, reply);
      },
    },
  ];
}

function sendFile(
  file: PageFile,
  cacheControl: string,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.headers({
    ...pageHeaders,
    "cache-control": cacheControl,
    etag: file.etag,
    vary: "accept-encoding",
  });
  if (request.headers["if-none-match"] === file.etag) return reply.code(304).send();
  reply.type(file.type);
  if (file.brotli === null || !acceptsBrotli(request)) return reply.send(file.body);
  return reply.header("content-encoding", "br").send(file.brotli);
}

function acceptsBrotli(request: FastifyRequest): boolean {
  const accepted = String(request.headers["accept-encoding"] ?? "");
  return /(?:^|,)\s*br\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))/.test(accepted);
}
