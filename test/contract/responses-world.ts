/** A server with a store of its own, and its DEBUG lines. */

import { request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { expect } from "vitest";
import type { ServedEmbedder, ServedReranker, ServerConfig } from "../../src/server/services.ts";
import type { Approvals } from "../../src/tools/approvals.ts";
import type { ServerConnector, ToolProvider } from "../../src/tools/types.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { createWorld, type World } from "./fake-services.ts";

export interface Event {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

/** A body as it came: tests say what they want of it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

/** Read while the test goes on. */
interface OpenStream {
  events: Event[];
  until(condition: (events: readonly Event[]) => boolean): Promise<void>;
  end(): Promise<Event[]>;
}

export interface ResponsesWorld extends World {
  store: Awaited<ReturnType<StoreWorld["open"]>>;
  /** Every line so far, parsed. */
  lines: Record<string, unknown>[];
  create(
    body: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; headers: Record<string, unknown>; body: Json }>;
  call(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    url: string,
    body?: object,
  ): Promise<{ status: number; body: Json }>;
  streamed(body: object): Promise<Event[]>;
  /** The stream while it comes, over HTTP. */
  opened(body: object): Promise<OpenStream>;
  close(): Promise<void>;
}

export async function createResponsesWorld(
  parts: {
    tools?: ToolProvider;
    embedder?: ServedEmbedder;
    reranker?: ServedReranker;
    approvals?: Approvals;
    requestedServers?: ServerConnector;
    config?: Partial<ServerConfig>;
  } = {},
): Promise<ResponsesWorld> {
  const stored = await storeWorld();
  const store = await stored.open();
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line) => lines.push(JSON.parse(line)) });
  const world = createWorld({ ...parts, store, config: { logger, ...parts.config } });
  const { app } = world;
  return {
    ...world,
    store,
    lines,
    async create(body, headers = {}) {
      const payload = body;
      const reply = await app.inject({ method: "POST", url: "/v1/responses", payload, headers });
      return { status: reply.statusCode, headers: reply.headers, body: reply.json() };
    },
    async call(method, url, body) {
      const reply = await app.inject({ method, url, ...(body ? { payload: body } : {}) });
      return { status: reply.statusCode, body: reply.json() };
    },
    async streamed(body) {
      const payload = { ...body, stream: true };
      const reply = await app.inject({ method: "POST", url: "/v1/responses", payload });
      expect(reply.statusCode).toBe(200);
      return eventsOf(reply.body);
    },
    opened: (body) => openStream(app, body),
    async close() {
      await app.close();
      await store.close();
      await stored.remove();
    },
  };
}

/** Each network chunk is one whole event. */
async function openStream(app: FastifyInstance, body: object): Promise<OpenStream> {
  if (!app.server.listening) await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const events: Event[] = [];
  let wake = (): void => {};
  let hasEnded = false;
  const outgoing = httpRequest(
    {
      port,
      host: "127.0.0.1",
      path: "/v1/responses",
      method: "POST",
      headers: { "content-type": "application/json" },
    },
    (reply) => {
      let text = "";
      reply.setEncoding("utf8");
      reply.on("data", (chunk: string) => {
        text += chunk;
        const end = text.lastIndexOf("\n\n") + 2;
        events.push(...eventsOf(text.slice(0, end)));
        text = text.slice(end);
        wake();
      });
      reply.on("end", () => {
        hasEnded = true;
        wake();
      });
    },
  );
  outgoing.end(JSON.stringify({ ...body, stream: true }));
  const until: OpenStream["until"] = async (condition) => {
    while (!condition(events) && !hasEnded) await new Promise<void>((resolve) => (wake = resolve));
    expect(condition(events)).toBe(true);
  };
  return {
    events,
    until,
    async end() {
      while (!hasEnded) await new Promise<void>((resolve) => (wake = resolve));
      return events;
    },
  };
}

/** Payloads of named events; `[DONE]` and comments left out. */
export function eventsOf(text: string): Event[] {
  return text.split("\n\n").flatMap((block) => {
    const data = block.split("\n").find((line) => line.startsWith("data: {"));
    return data === undefined ? [] : [JSON.parse(data.slice("data: ".length)) as Event];
  });
}

/** The TOOL_CALL lines: message and fields, without what every line has. */
export function toolCallLines(lines: readonly Record<string, unknown>[]): object[] {
  return lines
    .filter(({ msg }) => String(msg).startsWith("TOOL_CALL"))
    .map(({ level, time: _time, pid: _pid, hostname: _host, reqId: _id, ...rest }) => {
      expect(level).toBe(20);
      return rest;
    });
}
