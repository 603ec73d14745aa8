/** The built web page, read once: a few files that stay in memory. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

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
