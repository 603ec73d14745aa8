/** A server over a store's file that is killed, and the one that follows it. Needs `npm run build`. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

const child = fileURLToPath(new URL("kill-child.mjs", import.meta.url));

export interface KilledServer {
  server: ChildProcess;
  url: string;
}

/**
 * @param calls the file in which tools count their calls; see `kill-child.mjs`
 * @param replica default: without a name, at any port
 * @param unfinished the last word of a "long" answer never comes
 * @throws Error if the server ends before it says its port
 */
export async function startServer(
  store: string,
  calls?: string,
  replica?: { name: string; port: number },
  unfinished = false,
): Promise<KilledServer> {
  const args = replica === undefined ? [] : [String(replica.port), replica.name];
  const files = calls === undefined ? [store] : [store, calls];
  const server = spawn(process.execPath, [child, ...files, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...(unfinished ? { FAKE_UNFINISHED: "1" } : {}) },
  });
  return { server, url: `http://127.0.0.1:${await saidPort(server)}` };
}

async function saidPort(server: ChildProcess): Promise<string> {
  const said = new AbortController();
  const ended = once(server, "exit", { signal: said.signal }).then(([code, signal]) => {
    throw new Error(`The server ended before it said its port (code ${code}, signal ${signal}).`);
  });
  ended.catch(() => undefined);
  const port = once(server.stdout!, "data", { signal: said.signal }).then(([data]) =>
    String(data).trim(),
  );
  port.catch(() => undefined);
  return await Promise.race([port, ended]).finally(() => said.abort());
}

export async function kill(server: ChildProcess): Promise<void> {
  server.kill("SIGKILL");
  await once(server, "exit");
}

/** The request of a JSON body. */
export function jsonRequest(body: object, signal?: AbortSignal): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  };
}

/** @throws what `fetch` throws, once the server is gone */
export async function post<Body = Record<string, unknown>>(
  url: string,
  body: object,
  signal?: AbortSignal,
): Promise<Body> {
  const reply = await fetch(url, jsonRequest(body, signal));
  const text = await reply.text();
  expect(reply.ok, text).toBe(true);
  return JSON.parse(text) as Body;
}
