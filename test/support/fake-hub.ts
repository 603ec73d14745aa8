// A hub that is none: it speaks as much of the Hugging Face hub's protocol as `fermata pull` uses, and
// fails on demand. Its files are kept by a second server, as the real hub's are by a CDN.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeHub {
  url: string;
  /** Every request, of hub and CDN: who was asked for what, with which token and range. */
  requests: { host: "hub" | "cdn"; path: string; token: string | null; range: string | null }[];
  /** For the next transfers, one each: cut after so many bytes. */
  cuts: number[];
  /** Transfers wait for it after their first half. */
  gate: Promise<void> | null;
  /** Bytes of which one is wrong go out. */
  corrupts: boolean;
  /** In the place of every answer. */
  status: number | null;
  /** Without it, 401. */
  requiredToken: string | null;
  /** What its branch `main` is at. */
  commit: string;
  /** Of the list of files, in the place of the honest ones. */
  entries: object[] | null;
  close(): Promise<void>;
}

/** `files`: path to content; those above 1 kB are kept by the CDN, with a sha256. */
export async function startFakeHub(
  repository: string,
  files: Record<string, Buffer>,
): Promise<FakeHub> {
  const cdn = createServer((request, response) => {
    note("cdn", request);
    const path = decodeURIComponent(new URL(request.url!, "http://x").pathname.slice(1));
    void sendFile(hub, request, response, files[path]!);
  });
  const cdnUrl = await listen(cdn);
  const main = createServer((request, response) => {
    note("hub", request);
    if (hub.status !== null) return refuse(response, hub.status, "");
    if (
      hub.requiredToken !== null &&
      request.headers.authorization !== `Bearer ${hub.requiredToken}`
    )
      return refuse(response, 401, "GatedRepo");
    const { pathname, searchParams } = new URL(request.url!, "http://x");
    if (pathname.startsWith(`/api/models/${repository}/revision/`)) {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ id: repository, sha: hub.commit }));
    }
    if (/^[0-9a-f]{40}$/.test(pathname.replace(`/api/models/${repository}/tree/`, ""))) {
      // Two entries a page, so that pages are followed.
      const entries = hub.entries ?? treeOf(files);
      const page = Number(searchParams.get("page") ?? 0);
      if (entries.length > (page + 1) * 2)
        response.setHeader("link", `<${hub.url}${pathname}?page=${page + 1}>; rel="next"`);
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify(entries.slice(page * 2, page * 2 + 2)));
    }
    const path = decodeURIComponent(pathname.replace(/^.*\/resolve\/[0-9a-f]{40}\//, ""));
    const content = files[path];
    if (content === undefined) {
      return refuse(
        response,
        404,
        pathname.startsWith(`/${repository}/`) ? "EntryNotFound" : "RepoNotFound",
      );
    }
    if (!isLarge(content)) return void sendFile(hub, request, response, content);
    response.writeHead(302, {
      location: `${cdnUrl}/${encodeURIComponent(path)}`,
      "x-linked-etag": `"${sha256(content)}"`,
      "x-linked-size": content.length,
    });
    return response.end();
  });

  const hub: FakeHub = {
    url: await listen(main),
    requests: [],
    cuts: [],
    gate: null,
    corrupts: false,
    status: null,
    requiredToken: null,
    commit: "c".repeat(40),
    entries: null,
    close: async () => {
      for (const server of [main, cdn]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
  function note(host: "hub" | "cdn", { url, headers }: IncomingMessage): void {
    const { authorization = null, range = null } = headers;
    hub.requests.push({ host, path: url!, token: authorization, range });
  }
  return hub;
}

export function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function treeOf(files: Record<string, Buffer>): object[] {
  return Object.entries(files).map(([path, content]) => {
    const blob = Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]);
    const oid = createHash("sha1").update(blob).digest("hex");
    const lfs = { oid: sha256(content), size: content.length, pointerSize: 130 };
    return { type: "file", path, size: content.length, oid, ...(isLarge(content) && { lfs }) };
  });
}

function isLarge(content: Buffer): boolean {
  return content.length > 1000;
}

async function sendFile(
  hub: FakeHub,
  request: IncomingMessage,
  response: ServerResponse,
  whole: Buffer,
): Promise<void> {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  let content = whole.subarray(start);
  if (hub.corrupts && content.length > 0) {
    content = Buffer.from(content);
    content[content.length - 1]! ^= 1;
  }
  response.writeHead(start > 0 ? 206 : 200, {
    "content-length": content.length,
    ...(start > 0 && { "content-range": `bytes ${start}-${whole.length - 1}/${whole.length}` }),
  });
  const cut = hub.cuts.shift();
  if (cut !== undefined) {
    response.write(content.subarray(0, cut), () => response.destroy());
    return;
  }
  const half = content.length >> 1;
  response.write(content.subarray(0, half));
  await hub.gate;
  response.end(content.subarray(half));
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "x-error-code": code });
  response.end();
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
