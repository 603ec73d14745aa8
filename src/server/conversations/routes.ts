/** Every endpoint below /api/conversations, and the stream of a run's events. */

import type { Route } from "../route.ts";
import {
  answer,
  boolean,
  list,
  string,
  choice,
  nullable,
  object,
  whole,
  type Shape,
} from "../body/shapes.ts";
import type { FastifyRequest } from "fastify";
import type { NumberedEvent } from "../../store/types.ts";
import { fieldError } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { idInPath } from "../http/route-paths.ts";
import {
  readerGone,
  waitForServers,
  type AnswerStream,
  streamAnswer,
} from "../http/stream-answer.ts";
import type { SseMessage } from "../http/sse.ts";
import {
  parseConversationPatch,
  parseNewConversation,
  readConversationPage,
  conversationFields,
  conversationPatchFields,
} from "./fields.ts";
import { parseRunRequest, runFields } from "./run-request.ts";
import { type ConversationService, plainEvent } from "./service.ts";
import { answerOf } from "../answer/traces.ts";

const summaryShape = {
  id: string,
  title: string,
  created_at: whole,
  updated_at: whole,
  model: string,
  run_id: nullable(string),
};

const toolCallShape = answer(
  {
    call_id: string,
    event_type: choice("call", "result", "delegation_call", "delegation_result"),
    tool_name: string,
    tool_response: string,
    tool_call_details: object,
    is_complete: boolean,
  },
  { stream_part: string },
);

const messageShape = answer({
  id: string,
  parent_id: nullable(string),
  role: choice("user", "assistant"),
  message: string,
  files: list(answer({ name: string, characters: whole })),
  reasoning: string,
  citations: list(string),
  tool_calls: list(toolCallShape),
  status: choice("running", "complete", "length", "cancelled", "failed"),
  error: nullable(answer({ message: string, code: string })),
  run_id: nullable(string),
  created_at: whole,
  usage: nullable(
    answer({
      prompt_tokens: whole,
      completion_tokens: whole,
      cached_tokens: whole,
      prefilled_tokens: whole,
    }),
  ),
  timeline: list(
    answer(
      {
        type: choice("phase"),
        phase: choice("queued", "prefill", "decode", "hold", "tool", "resume"),
        at_ms: whole,
      },
      { call_id: string, tokens: whole },
    ),
  ),
});

const conversationShape = answer({
  ...summaryShape,
  tools: nullable(list(string)),
  instructions: nullable(string),
  // As it was sent.
  response_format: {} as Shape<unknown>,
  leaf_id: nullable(string),
  messages: list(messageShape),
});

export interface ConversationsContext extends RouteContext {
  conversations: ConversationService;
}

export function branchedConversationRoutes(context: ConversationsContext): Route[] {
  const { conversations, warnings } = context;
  return [
    {
      at: "GET /api/conversations",
      summary: "Branched conversations, the last changed first.",
      query: { limit: { type: "integer", minimum: 1, maximum: 100 }, before: string },
      answer: answer({ conversations: list(answer(summaryShape)), has_more: boolean }),
      handler: async (request) => {
        const page = readConversationPage(request.query as Record<string, unknown>);
        return await conversations.list(request.owner, page);
      },
    },
    {
      at: "POST /api/conversations",
      summary: "Creates a branched conversation.",
      request: conversationFields,
      example: { title: "Harbour" },
      status: 201,
      answer: conversationShape,
      handler: async (request, reply) => {
        const given = parseNewConversation(request.body, warnings.warn);
        reply.code(201);
        return await conversations.create(request.owner, given);
      },
    },
    {
      at: "GET /api/conversations/:id",
      summary: "A conversation with the messages of all branches.",
      answer: conversationShape,
      handler: async (request) => await conversations.get(request.owner, idInPath(request)),
    },
    {
      at: "PATCH /api/conversations/:id",
      summary: "Renames a conversation, changes its settings or the branch that is shown.",
      request: conversationPatchFields,
      answer: conversationShape,
      handler: async (request) => {
        const patch = parseConversationPatch(request.body, warnings.warn);
        return await conversations.change(request.owner, idInPath(request), patch);
      },
    },
    {
      at: "DELETE /api/conversations/:id",
      summary: "Deletes a conversation and cancels its runs.",
      status: 204,
      answer: null,
      handler: async (request, reply) => {
        await conversations.delete(request.owner, idInPath(request));
        return reply.code(204).send();
      },
    },
    {
      at: "POST /api/conversations/:id/runs",
      summary: "Begins the answer to a message; it goes on without a viewer.",
      request: runFields,
      status: 202,
      answer: answer({
        run_id: string,
        user_message_id: string,
        message_id: string,
        stream_url: string,
      }),
      preHandler: waitForServers(context.services.tools),
      handler: async (request, reply) => {
        const startedAt = performance.now();
        const body = parseRunRequest(request.body, warnings.warn);
        const run = { ...context, answer: answerOf(request), log: request.log, startedAt };
        const owner = request.owner;
        const started = await conversations.startRun(owner, idInPath(request), body, run);
        return reply.code(202).send(started);
      },
    },
    {
      at: "POST /api/conversations/:id/runs/:run_id/cancel",
      summary: "Cancels a run.",
      status: 202,
      answer: answer({ run_id: string }),
      handler: async (request, reply) => {
        const { run_id: runId } = request.params as { run_id: string };
        await conversations.cancelRun(request.owner, idInPath(request), runId);
        return reply.code(202).send({ run_id: runId });
      },
    },
    streamRoute(context),
  ];
}

/** A run's events, or those after Last-Event-ID. A client that has read them all gets 204 and stops. */
function streamRoute({ conversations, config }: ConversationsContext): Route {
  return {
    at: "GET /api/conversations/:id/stream",
    summary: "The events of a run, those after Last-Event-ID; 204 after the last.",
    query: { run_id: string, details: { type: "string", enum: ["0", "1"] }, token: string },
    streams: true,
    answer: null,
    config: { takesStreamToken: true },
    handler: async (request, reply) => {
      const query = request.query as Record<string, string | undefined>;
      const withDetails = query["details"] === "1";
      const viewer = readerGone(reply);
      const wanted = {
        runId: query["run_id"] ?? null,
        after: readLastEventId(request),
        withDetails,
      };
      const owner = request.owner;
      const events = await conversations.events(owner, idInPath(request), wanted, viewer);
      if (events === null) return reply.code(204).send();
      await streamAnswer(events, new ConversationStream(withDetails), { request, reply, config });
      return reply;
    },
  };
}

function readLastEventId({ headers }: FastifyRequest): number {
  const id = headers["last-event-id"];
  if (id === undefined || id === "") return 0;
  if (typeof id === "string" && /^\d{1,9}$/.test(id)) return Number(id);
  throw fieldError(
    "invalid_value",
    "last-event-id",
    "is not an id of this stream",
    "Send the id of the last event that was read",
  );
}

/** Unnamed events, numbered, without an end mark. */
class ConversationStream implements AnswerStream<NumberedEvent> {
  readonly isResumable = true;
  readonly #withDetails: boolean;

  constructor(withDetails: boolean) {
    this.#withDetails = withDetails;
  }

  messages({ number, body }: NumberedEvent): SseMessage[] {
    const data = this.#withDetails ? body : plainEvent(body);
    return data === null ? [] : [{ id: String(number), data }];
  }

  /**
   * A failed run has told it: in its message, and in its last event to viewers that asked for details. Where only the
   * reading fails, the viewer comes again with the id of its last event.
   */
  failure(): SseMessage[] {
    return [];
  }
}
