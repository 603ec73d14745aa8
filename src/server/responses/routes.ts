/** Every endpoint below /v1/responses, and the streams of their events. */

import { responseFields } from "./fields.ts";
import type { Route } from "../route.ts";
import {
  answer,
  boolean,
  choice,
  inputTokens,
  list,
  object,
  string,
  whole,
  yes,
  oneOf,
} from "../body/shapes.ts";
import type { FastifyInstance } from "fastify";
import { FermataError } from "../../errors.ts";
import { messagesFor } from "../answer/answer.ts";
import { readRequest } from "../answer/target.ts";
import { fieldError } from "../body/field.ts";
import { pageOf, readPageQuery, pageQuery } from "../body/stored.ts";
import type { RouteContext } from "../context.ts";
import { takeHandedOver, takeOverLeft } from "../answer/shared-runs.ts";
import { idInPath } from "../http/route-paths.ts";
import { sendError } from "../http/error-replies.ts";
import { defaultBodyBytes } from "../http/json-body.ts";
import {
  readerGone,
  waitForServers,
  Preparation,
  type AnswerStream,
  streamAnswer,
} from "../http/stream-answer.ts";
import { type SseMessage, typedMessage } from "../http/sse.ts";
import type { ServerConfig } from "../services.ts";
import { answerOf, answerOfNobody } from "../answer/traces.ts";
import { resumeBeforeModel } from "./before-model.ts";
import { compact, withRequest } from "./input/compaction.ts";
import { conversationRoutes } from "./conversation-routes.ts";
import { parseToolOutput, toolOutputFields } from "./calls/held.ts";
import { ofInput, parseResponsesRequest } from "./request.ts";
import { ResponseService, type ResponsesContext } from "./service.ts";
import { responseSocketRoute } from "./socket.ts";
import { isRepeatable, type WireEvent, itemPage, response, responseUsage } from "./types.ts";
import type { Sent } from "./calls/waiting.ts";

/** When the server closes, running responses are ended, and their events so far are kept. */
export function installResponses(app: FastifyInstance, context: RouteContext): ResponseService {
  const responses = new ResponseService(context);
  app.addHook("preClose", async () => {
    const reason = new FermataError(
      "engine_closed",
      "The server is shutting down. Try again later.",
    );
    await responses.live.expected.giveAllUp(reason);
    await responses.live.cancel(
      responses.live.where(() => true),
      reason,
    );
  });
  const answer = answerOfNobody("/v1/responses");
  takeOverLeft(app, {
    shared: context.services.store?.shared,
    take: () => responses.adopt({ ...context, answer, log: app.log }),
    cancel: (id, reason) => responses.live.cancelById(id, reason),
  });
  takeHandedOver(context.services.store?.shared, (id, sent: Sent) =>
    responses.waiting.take(id, sent),
  );
  return responses;
}

/** Routes that the model of their request answers. */
export function responsesRoutes(context: ResponsesContext): Route[] {
  return withInputErrors([
    createResponseRoute(context, "POST /v1/responses"),
    // For clients that were made for it.
    createResponseRoute(context, "POST /codex/responses"),
    ...promptRoutes(context),
  ]);
}

/** Routes of what is there already, and the WebSocket, whose messages name models. */
export function storedResponsesRoutes(context: ResponsesContext): Route[] {
  return withInputErrors([
    responseSocketRoute(context),
    ...storedResponseRoutes(context),
    ...conversationRoutes(context.responses.store, context.warnings, context.config.replica),
  ]);
}

function withInputErrors(routes: Route[]): Route[] {
  return routes.map((route) => ({
    ...route,
    errorHandler: (error, request, reply) => sendError(ofInput(error), request, reply),
  }));
}

const ofResponse = answer({ id: string });
/** The outputs that a held response waited for came: that one goes on. */
const goesOn = answer({ id: string, status: choice("in_progress") });
/** Sent only to clients that asked for them: `--responses-events`, `fermata.events`. */
const toolCallEvents = {
  "response.tool_call.delta": {
    ...answer({
      type: choice("response.tool_call.delta"),
      sequence_number: whole,
      response: ofResponse,
      item_id: string,
      call_id: string,
      name: string,
      delta: {
        ...string,
        description: "Only what is new; a call's deltas, joined, are its arguments",
      },
    }),
    description: "With events: extended, before each delta of OpenAI's of a client's call.",
  },
  "response.tool_call.completed": {
    ...answer({
      type: choice("response.tool_call.completed"),
      sequence_number: whole,
      response: ofResponse,
      call_id: string,
    }),
    description: "With events: extended: the arguments are whole, the client may run the call.",
  },
};

function createResponseRoute(context: ResponsesContext, at: Route["at"]): Route {
  const { config, active, responses } = context;
  return {
    at,
    summary: "An answer in OpenAI's Responses format.",
    request: responseFields,
    example: { input: "Hello!" },
    streams: toolCallEvents,
    answer: oneOf(response, goesOn),
    preHandler: waitForServers(context.services.tools),
    async withoutModel(request) {
      const id = await resumeBeforeModel(request.body, request.owner, context);
      return id === null ? undefined : resumed(id);
    },
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const { target, body } = await readRequest(request.body, parseResponsesRequest, context);
      const preparation = new Preparation();
      const started = await responses.start(body, {
        ...context,
        target,
        answer: answerOf(request),
        log: request.log,
        startedAt,
        owner: request.owner,
        signal: active.signalFor(reply),
        preparation,
        wire: request.body,
      });
      if (started.kind === "resumed") return resumed(started.id);
      const { run, headers } = started;
      reply.headers(headers);
      if (body.background && !body.stream) return run.accepted;
      const events = run.read(-1);
      if (!body.stream) {
        const last = await lastResponse(events);
        // Nobody looks for a failure behind a 200.
        if (run.failure !== null) throw run.failure;
        return last;
      }
      await streamAnswer(events, new ResponseStream(), { request, reply, config, preparation });
      return reply;
    },
  };
}

function resumed(id: string): object {
  return { id, status: "in_progress" };
}

async function lastResponse(events: AsyncIterable<WireEvent>): Promise<unknown> {
  let last: unknown = null;
  for await (const event of events) last = event["response"];
  return last;
}

/** Routes of an existing response. */
function storedResponseRoutes({ responses, config, warnings }: ResponsesContext): Route[] {
  return [
    {
      at: "GET /v1/responses/:id",
      summary: "A stored response; as a stream from `starting_after` on.",
      streams: true,
      answer: response,
      query: { stream: boolean, starting_after: { type: "integer", minimum: 0 } },
      handler: async (request, reply) => {
        const query = request.query as Record<string, string | undefined>;
        const asked = [request.owner, idInPath(request)] as const;
        if (!readStream(query["stream"])) return await responses.retrieve(...asked);
        const after = readStartingAfter(query["starting_after"]);
        const events = await responses.replay(...asked, after, readerGone(reply));
        await streamAnswer(events, new ResponseStream(), { request, reply, config });
        return reply;
      },
    },
    {
      at: "DELETE /v1/responses/:id",
      summary: "Deletes a stored response.",
      answer: answer({ id: string, object: choice("response"), deleted: yes }),
      handler: async (request) => {
        const id = idInPath(request);
        await responses.delete(request.owner, id);
        return { id, object: "response", deleted: true };
      },
    },
    {
      at: "POST /v1/responses/:id/cancel",
      summary: "Cancels a background response.",
      answer: response,
      /** Ends a background response; its output so far stays. */
      handler: async (request) => await responses.cancel(request.owner, idInPath(request)),
    },
    {
      at: "GET /v1/responses/:id/input_items",
      summary: "What a stored response was given.",
      answer: itemPage,
      query: pageQuery,
      handler: async (request) => {
        const page = readPageQuery(request.query as Record<string, unknown>);
        return pageOf(await responses.inputItems(request.owner, idInPath(request)), page);
      },
    },
    {
      at: "POST /v1/responses/:id/tool_outputs",
      summary: "The result of a call that a held response waits for.",
      request: toolOutputFields,
      answer: goesOn,
      config: { answersWhileDraining: true },
      bodyLimit: outputBodyBytes(config),
      handler: async (request) => {
        const id = idInPath(request);
        const { callId, output } = parseToolOutput(
          request.body,
          warnings.warn,
          config.maxToolOutputBytes,
        );
        await responses.waiting.deliver(request.owner, id, callId, output);
        return { id, status: "in_progress" };
      },
    },
  ];
}

/** An output may be as large as one of an MCP server, and JSON escapes its quotes and line ends. */
function outputBodyBytes({
  maxBodyBytes = defaultBodyBytes,
  maxToolOutputBytes = 0,
}: ServerConfig): number {
  return Math.max(maxBodyBytes, 2 * maxToolOutputBytes);
}

/** Routes that use a request's prompt and make no response. */
function promptRoutes(context: ResponsesContext): Route[] {
  const { services, responses, active } = context;
  return [
    {
      at: "POST /v1/responses/input_tokens",
      summary: "What a request would take of the context.",
      request: responseFields,
      example: { input: "Hello!" },
      answer: inputTokens,
      preHandler: waitForServers(services.tools),
      handler: async (request) => {
        const { target, body } = await readRequest(request.body, parseResponsesRequest, context);
        const prompt = await responses.prompt(body, request.owner, {
          tools: target.tools,
          requestedServers: services.requestedServers,
        });
        const all = target.instruct(prompt.messages);
        const messages = body.compacts ? withRequest(all) : messagesFor(prompt.mode, all);
        const tokens = await target.chat.countPromptTokens(
          { ...prompt, messages },
          { mayExceed: true },
        );
        return { object: "response.input_tokens", input_tokens: tokens };
      },
    },
    {
      at: "POST /v1/responses/compact",
      summary: "A conversation as its users' words and a summary.",
      request: responseFields,
      example: { model: "default", input: "Hello!" },
      answer: answer({
        id: string,
        object: choice("response.compaction"),
        created_at: whole,
        output: list(object),
        usage: responseUsage,
      }),
      handler: async (request, reply) => {
        const startedAt = performance.now();
        const { target, body } = await readRequest(request.body, parseResponsesRequest, context);
        if (body.model === null)
          throw fieldError("missing_field", "model", "is missing", "Send the model's name");
        const prompt = await responses.prompt(body, request.owner, services);
        const run = { ...context, target, answer: answerOf(request), log: request.log, startedAt };
        return await compact(body, prompt, run, active.signalFor(reply));
      },
    },
  ];
}

function readStream(value: string | undefined): boolean {
  // Python writes its own names.
  const lower = value?.toLowerCase();
  if (lower === undefined || lower === "false") return false;
  if (lower === "true") return true;
  throw fieldError("invalid_value", "stream", "is neither true nor false", "Send true or false");
}

function readStartingAfter(value: string | undefined): number {
  if (value === undefined) return -1;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw fieldError(
    "invalid_value",
    "starting_after",
    "is not a sequence number",
    "Send the number of the last event that was read",
  );
}

/** Named events, then `[DONE]`, as the Open Responses specification requires. */
class ResponseStream implements AnswerStream<WireEvent> {
  #next = 0;
  #last: WireEvent | null = null;

  waiting(): SseMessage | undefined {
    const last = this.#last;
    return last !== null && isRepeatable(last) ? typedMessage(last) : undefined;
  }

  messages(event: WireEvent): SseMessage[] {
    this.#next = event.sequence_number + 1;
    this.#last = event;
    return [typedMessage(event)];
  }

  closing(): SseMessage[] {
    return [{ data: "[DONE]" }];
  }

  /** For failures outside of a response: OpenAI's keys are flat, the specification's are nested. */
  failure({ code, message, param, type }: FermataError): SseMessage[] {
    const error = { type, code, message, param };
    const event = { type: "error", sequence_number: this.#next, code, message, param, error };
    return [typedMessage(event), ...this.closing()];
  }
}
