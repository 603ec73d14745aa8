/** GET / and /c/{id}: the web page; GET /assets/{name}: what it loads. They need no key and hold no data. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { BareRoute } from "../route.ts";
import { FermataError } from "../../errors.ts";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

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

export function pageRoutes({ index, assets }: PageFiles): BareRoute[] {
  const sendIndex = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    sendFile(index, askAgain, request, reply);
  const config = { public: true } as const;
  return [
    { at: "GET /", config, logLevel: "warn", handler: sendIndex },
    { at: "GET /c/:id", config, logLevel: "warn", handler: sendIndex },
    {
      at: "GET /assets/:name",
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

/** In the place of the page: Ollama's clients ask here whether a server is there. */
export function noPageRoute(): BareRoute {
  return {
    at: "GET /",
    config: { public: true },
    logLevel: "warn",
    handler: async (_request, reply) => reply.type("text/plain").send("Fermata is running.\n"),
  };
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

export interface PageFile {
  body: Buffer;
  /** The same, compressed; null where that is not worth it. */
  brotli: Buffer | null;
  type: string;
  etag: string;
}

export interface PageFiles {
  index: PageFile;
  /** By name; the name has a hash of the content in it. */
  assets: ReadonlyMap<string, PageFile>;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Null: the page was not built. */
export function readPageFiles(directory: string): PageFiles | null {
  const index = join(directory, "index.html");
  if (!existsSync(index)) return null;
  const assetsDirectory = join(directory, "assets");
  const names = readdirSync(assetsDirectory).filter((name) => extname(name) in types);
  const assets = new Map(names.map((name) => [name, readFile(join(assetsDirectory, name))]));
  return { index: readFile(index), assets };
}

function readFile(path: string): PageFile {
  const body = readFileSync(path);
  const compressed = `${path}.br`;
  return {
    body,
    brotli: existsSync(compressed) ? readFileSync(compressed) : null,
    type: types[extname(path)]!,
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
  };
}
