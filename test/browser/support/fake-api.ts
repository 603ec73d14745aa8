// A fake of everything under /api, named as what it is: it serves the real page by the real route, and
// answers with events that a test made up. Nothing here knows a model.
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { fileURLToPath } from "node:url";
import { pageRoutes, readPageFiles } from "../../../src/server/about/page.ts";
import { addressOf } from "../../../src/server/route.ts";
import {
  applyEvent,
  type ConversationState,
  emptyState,
  type ToolCallState,
} from "../../../src/client/conversation-state.ts";
import type { ConversationEvent, ToolCallResponse } from "../../../src/client/types.ts";
import type {
  Conversation,
  EngineState,
  Message,
  Toolbox,
  Trace,
} from "../../../ui/src/api/wire.ts";

const pageDirectory = fileURLToPath(new URL("../../../ui/dist/", import.meta.url));

export type Answer = (message: string) => AsyncIterable<ConversationEvent>;

export interface FakeApiOptions {
  answer?: Answer;
  toolbox?: Toolbox;
  /** Asked for by the page. */
  apiKey?: string;
}

interface RunBody {
  message?: string;
  retry?: string;
  files?: { name: string; text: string }[];
  files_of?: string;
  parent_id?: string | null;
}

interface Run {
  id: string;
  message: Message;
  events: ConversationEvent[];
  changed: Set<() => void>;
  cancelled: boolean;
}

/** An event of nothing but what is given. */
export function event(fields: Partial<ConversationEvent>): ConversationEvent {
  return { message: "", citations: [], tool_calls: [], ...fields };
}

export const engineAtRest: EngineState = {
  model: { id: "fake-model", context_size: 8192 },
  sequences: { running: 0, waiting: 0, held: 0 },
  kv_cells: { used: 2361, retained: 512, free: 5319 },
  kv_ram: { sequences: 3, used: 70_778_880, limit: 8_589_934_592 },
  kv_disk: { sequences: 0, used: 0, limit: 0 },
  tokens_per_second: 0,
  prefilled_tokens: 2361,
  new_tokens: 2361,
  re_prefill_ratio: 1,
};

export const fakeToolbox: Toolbox = {
  servers: [
    {
      name: "files",
      transport: "stdio",
      state: "ready",
      error: null,
      tools: ["list_directory", "read_text_file", "search_files"].map((name) => ({
        name,
        description: `What ${name} is good for, in a sentence or two.`,
        read_only: true,
        approval: "never" as const,
      })),
    },
    {
      name: "mail",
      transport: "stdio",
      state: "failed",
      error: "It ended with code 1.",
      tools: [],
    },
  ],
  agents: [{ name: "reader", description: "Reads files and tells what they say." }],
  models: [{ id: "fake-model" }],
};

export class FakeApi {
  readonly conversations = new Map<string, Conversation>();
  readonly decisions: { callId: string; decision: string; askingId: string }[] = [];
  /** Bodies of the runs that were asked for. */
  readonly asked: RunBody[] = [];
  /** Of the inspector, the newest first. */
  traces: Trace[] = [];
  readonly #runs = new Map<string, Run>();
  readonly #options: FakeApiOptions;
  readonly #app: FastifyInstance;
  #count = 0;
  url = "";

  constructor(options: FakeApiOptions) {
    this.#options = options;
    this.#app = Fastify({ forceCloseConnections: true });
    const page = readPageFiles(pageDirectory);
    if (page === null) throw new Error("The page is not built: npm run setup.");
    for (const route of pageRoutes(page)) this.#app.route({ ...route, ...addressOf(route) });
    this.#addRoutes(this.#app);
  }

  async listen(port = 0): Promise<this> {
    this.url = await this.#app.listen({ port, host: "127.0.0.1" });
    return this;
  }

  close(): Promise<unknown> {
    return this.#app.close();
  }

  /** A conversation of messages that are there already, user and assistant in turn. */
  addConversation(title: string, texts: readonly string[], more: Partial<Message> = {}): string {
    const conversation = this.#create({ title });
    for (const [index, text] of texts.entries()) {
      const role = index % 2 === 0 ? "user" : "assistant";
      const message = { message: text, ...(role === "assistant" ? more : {}) };
      this.#append(conversation, role, conversation.leaf_id, message);
    }
    return conversation.id;
  }

  #id(prefix: string): string {
    this.#count += 1;
    return `${prefix}_${this.#count}`;
  }

  #create(fields: Partial<Conversation>): Conversation {
    const now = Math.floor(Date.now() / 1000);
    const conversation: Conversation = {
      id: this.#id("conv"),
      title: "",
      created_at: now,
      updated_at: now,
      model: "fake-model",
      run_id: null,
      tools: null,
      instructions: null,
      response_format: null,
      leaf_id: null,
      messages: [],
      ...fields,
    };
    this.conversations.set(conversation.id, conversation);
    return conversation;
  }

  #append(
    conversation: Conversation,
    role: Message["role"],
    parentId: string | null,
    fields: Partial<Message>,
  ): Message {
    const message: Message = {
      id: this.#id("msg"),
      parent_id: parentId,
      role,
      message: "",
      reasoning: "",
      files: [],
      citations: [],
      tool_calls: [],
      status: "complete",
      error: null,
      run_id: null,
      created_at: conversation.created_at,
      usage: null,
      timeline: [],
      ...fields,
    };
    conversation.messages.push(message);
    conversation.leaf_id = message.id;
    return message;
  }

  #start(conversation: Conversation, user: Message): Run {
    const id = this.#id("run");
    const message = this.#append(conversation, "assistant", user.id, {
      status: "running",
      run_id: id,
    });
    const run: Run = { id, message, events: [], changed: new Set(), cancelled: false };
    this.#runs.set(id, run);
    conversation.run_id = id;
    void this.#play(conversation, run, user.message);
    return run;
  }

  async #play(conversation: Conversation, run: Run, text: string): Promise<void> {
    const answer = this.#options.answer?.(text);
    let turn = emptyState;
    const add = (each: ConversationEvent): void => {
      run.events.push(each);
      turn = applyEvent(turn, each);
      Object.assign(run.message, stored(turn));
      for (const changed of run.changed) changed();
    };
    if (answer !== undefined) {
      for await (const each of answer) {
        if (run.cancelled) break;
        add(each);
      }
    }
    const status = run.cancelled ? "cancelled" : "complete";
    if (turn.end === null) add(event({ details: [{ type: "end", status }] }));
    conversation.run_id = null;
    run.message.run_id = null;
  }

  #addRoutes(app: FastifyInstance): void {
    const { apiKey } = this.#options;
    app.addHook("onRequest", async (request, reply) => {
      if (apiKey === undefined || !request.url.startsWith("/api/")) return;
      const isKnown =
        request.headers.cookie?.includes("fermata_session=good") === true ||
        request.headers.authorization === `Bearer ${apiKey}`;
      if (!isKnown) await refuse(reply, 401, "The API key is not known.");
    });
    app.post("/api/session", (_request, reply) =>
      reply
        .header("set-cookie", "fermata_session=good; HttpOnly; SameSite=Strict; Path=/")
        .code(204)
        .send(),
    );
    app.get("/api/tools", () => this.#options.toolbox ?? fakeToolbox);
    app.get("/api/traces", () => ({ traces: this.traces }));
    app.get("/api/engine/stream", (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { "content-type": "text/event-stream" });
      reply.raw.write(`data: ${JSON.stringify(engineAtRest)}\n\n`);
    });
    app.get<{ Querystring: { limit: string; before?: string } }>(
      "/api/conversations",
      ({ query: { limit, before } }) => {
        const all = [...this.conversations.values()].toReversed();
        const start = all.findIndex(({ id }) => id === before) + 1;
        const end = start + Number(limit);
        return { conversations: all.slice(start, end), has_more: end < all.length };
      },
    );
    app.post<{ Body: Partial<Conversation> }>("/api/conversations", ({ body }) =>
      this.#create(body),
    );
    app.post<{ Params: { id: string }; Body: { decision: string; asking_id: string } }>(
      "/api/approvals/:id",
      ({ params: { id: callId }, body: { decision, asking_id: askingId } }) => {
        this.decisions.push({ callId, decision, askingId });
        return {};
      },
    );
    this.#addConversationRoutes(app);
  }

  #addConversationRoutes(app: FastifyInstance): void {
    const path = "/api/conversations/:id";
    interface Route {
      Params: { id: string; run: string };
    }
    app.get<Route>(path, ({ params }, reply) => {
      const found = this.conversations.get(params.id);
      return found ?? refuse(reply, 404, "There is no such conversation.");
    });
    app.patch<Route & { Body: Partial<Conversation> }>(path, ({ params, body }) =>
      Object.assign(this.conversations.get(params.id)!, body),
    );
    app.delete<Route>(path, ({ params }, reply) => {
      this.conversations.delete(params.id);
      return reply.code(204).send();
    });
    app.post<Route & { Body: RunBody }>(`${path}/runs`, ({ params, body }, reply) => {
      const conversation = this.conversations.get(params.id)!;
      this.asked.push(body);
      const kept = conversation.messages.find(({ id }) => id === body.files_of)?.files;
      const files = body.files?.map(({ name, text }) => ({ name, characters: text.length }));
      const retried = conversation.messages.find(({ id }) => id === body.retry);
      const parent = body.parent_id === undefined ? conversation.leaf_id : body.parent_id;
      const user =
        retried === undefined
          ? this.#append(conversation, "user", parent, {
              message: body.message ?? "",
              files: kept ?? files ?? [],
            })
          : conversation.messages.find(({ id }) => id === retried.parent_id)!;
      const run = this.#start(conversation, user);
      const stream = `/api/conversations/${conversation.id}/stream?run_id=${run.id}`;
      return reply.code(202).send({
        run_id: run.id,
        user_message_id: user.id,
        message_id: run.message.id,
        stream_url: stream,
      });
    });
    app.post<Route>(`${path}/runs/:run/cancel`, ({ params }, reply) => {
      this.#runs.get(params.run)!.cancelled = true;
      return reply.code(202).send({});
    });
    app.get<{ Querystring: { run_id: string } }>(`${path}/stream`, ({ query, headers }, reply) => {
      const run = this.#runs.get(query.run_id)!;
      const seen = Number(headers["last-event-id"] ?? 0);
      if (run.message.status !== "running" && seen >= run.events.length)
        return reply.code(204).send();
      return stream(run, seen, reply);
    });
  }
}

function stream(run: Run, seen: number, reply: FastifyReply): void {
  reply.hijack();
  reply.raw.writeHead(200, { "content-type": "text/event-stream" });
  let next = seen;
  const write = (): void => {
    for (; next < run.events.length; next++) {
      reply.raw.write(`id: ${next + 1}\ndata: ${JSON.stringify(run.events[next])}\n\n`);
    }
    if (run.message.status !== "running") reply.raw.end();
  };
  run.changed.add(write);
  reply.raw.once("close", () => run.changed.delete(write));
  write();
}

function refuse(reply: FastifyReply, status: number, message: string): FastifyReply {
  const error = { message, type: "invalid_request_error", param: null, code: "refused" };
  return reply.code(status).send({ error });
}

function stored(turn: ConversationState): Partial<Message> {
  const { message, reasoning, citations, end, timeline, toolCalls } = turn;
  return {
    message,
    reasoning,
    citations: [...citations],
    status: end?.status ?? "running",
    error: end?.error ?? null,
    usage: end?.usage ?? null,
    timeline: [...timeline],
    tool_calls: toolCalls.map(storedCall),
  };
}

function storedCall(call: ToolCallState): ToolCallResponse {
  const { call_id, event_type, tool_name, content, is_complete, milliseconds } = call;
  const tool_call_details = {
    ...call.tool_call_details,
    arguments: call.arguments,
    ...(milliseconds !== null && { milliseconds }),
  };
  return { call_id, event_type, tool_name, tool_response: content, is_complete, tool_call_details };
}
