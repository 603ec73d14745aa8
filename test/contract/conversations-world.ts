/** A server with conversations, kept in memory or in a store. */

import { expect } from "vitest";
import { SseParser } from "../../src/client/sse-parser.ts";
import type { Conversation, ConversationEvent, RunStarted } from "../../src/client/types.ts";
import type { ServerConfig } from "../../src/server/services.ts";
import type { BranchStore } from "../../src/store/types.ts";
import type { Tool, ToolCallContext, ToolProvider, ToolResult } from "../../src/tools/types.ts";
import { type StoreKind, storeOfTests, storeWorld } from "../support/store-worlds.ts";
import { createWorld, finish, type ScriptStep, type World } from "./fake-services.ts";

export interface ConversationsWorld extends World {
  url: string;
  call<Body = Conversation>(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Body & ErrorBody; headers: Headers }>;
  /** Creates a conversation and lets the model say `script` to a message. */
  begin(message: string, script: ScriptStep[]): Promise<RunStarted & { id: string }>;
  /** A run in a conversation, in which the model says `text`, read to its end. */
  answer(id: string, text: string, run: object): Promise<RunStarted>;
  /** Reads to the end of the connection, or `most` events and no more. */
  read(path: string, options?: ReadOptions): Promise<{ status: number; events: ReadEvent[] }>;
  close(): Promise<void>;
}

interface ErrorBody {
  error: { code: string; message: string; param: string | null };
}

interface ReadOptions {
  lastEventId?: string;
  most?: number;
}

export interface ReadEvent {
  id: string;
  event: ConversationEvent;
}

export async function createConversationsWorld(
  parts: {
    tools?: ToolProvider;
    config?: Partial<ServerConfig>;
    branches?: BranchStore;
    kept?: "memory" | StoreKind;
  } = {},
): Promise<ConversationsWorld> {
  const { kept = storeOfTests === "sqlite" ? "memory" : storeOfTests } = parts;
  const stored = kept === "memory" ? undefined : await storeWorld(kept);
  const store = await stored?.open();
  const world = createWorld({ ...parts, ...(store && { store, branches: store.branches }) });
  const { app, chat } = world;
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const call: ConversationsWorld["call"] = async (method, path, body, headers = {}) => {
    const reply = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    return {
      status: reply.status,
      body: text === "" ? null : JSON.parse(text),
      headers: reply.headers,
    };
  };
  return {
    ...world,
    url,
    call,
    async begin(message, script) {
      chat.script = script;
      const { body } = await call("POST", "/api/conversations", {});
      const path = `/api/conversations/${body.id}/runs`;
      const started = await call<RunStarted>("POST", path, { message });
      return { ...started.body, id: body.id };
    },
    async answer(id, text, run) {
      chat.script = says(text);
      const started = await call<RunStarted>("POST", `/api/conversations/${id}/runs`, run);
      expect(started.status, JSON.stringify(started.body)).toBe(202);
      await readEvents(url + started.body.stream_url);
      return started.body;
    },
    read: (path, options) => readEvents(url + path, options),
    async close() {
      const closing = app.close();
      // Those that a client keeps for later would be waited for.
      app.server.closeAllConnections();
      await closing;
      await store?.close();
      await stored?.remove();
    },
  };
}

export function says(text: string): ScriptStep[] {
  return [{ type: "content", text }, finish("stop")];
}

/** One connection, without the client package: it is what is tested. */
async function readEvents(
  url: string,
  { lastEventId, most = Infinity }: ReadOptions = {},
): Promise<{ status: number; events: ReadEvent[] }> {
  const abort = new AbortController();
  const reply = await fetch(url, {
    headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
    signal: abort.signal,
  });
  const events: ReadEvent[] = [];
  const parser = new SseParser();
  try {
    for await (const chunk of reply.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      for (const { id, event, data } of parser.push(chunk)) {
        if (event !== "message") throw new TypeError(`a named event: ${event}`);
        events.push({ id, event: JSON.parse(data) as ConversationEvent });
        if (events.length < most) continue;
        abort.abort();
        return { status: reply.status, events };
      }
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  }
  return { status: reply.status, events };
}

/** A tool whose calls do what the test says. */
export function scriptedTool(
  name: string,
  work: (args: Record<string, string>, context: ToolCallContext) => Promise<ToolResult | string>,
  { server = "files" }: { server?: string } = {},
): Tool {
  return {
    definition: { name, parameters: { type: "object" } },
    server,
    async call(args, context) {
      const result = await work(args as Record<string, string>, context);
      return typeof result === "string" ? { content: result, isError: false } : result;
    },
  };
}

/** Something that a test lets happen. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}
