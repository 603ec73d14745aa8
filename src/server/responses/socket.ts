/**
 * WebSocket mode: each message is a request, its events are messages. Requests of one connection run one after the
 * other. A response that is not stored is remembered until the next one of its connection, for `previous_response_id`.
 */

import type { Route } from "../route.ts";
import type { FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import { FermataError } from "../../errors.ts";
import { isJsonObject } from "../../json.ts";
import { withModel } from "../answer/model-use.ts";
import { readRequest, wantedModel } from "../answer/target.ts";
import { fieldError } from "../body/field.ts";
import { keepAliveOf } from "../body/keep-alive.ts";
import { logError } from "../http/error-replies.ts";
import { defaultBodyBytes } from "../http/json-body.ts";
import { silencesPerEvent, watchReader } from "../http/sse.ts";
import { missingServers, Preparation, sseTimes } from "../http/stream-answer.ts";
import { acceptWebSocket } from "../http/web-sockets.ts";
import { resumeBeforeModel } from "./before-model.ts";
import { ofInput, parseResponsesRequest } from "./request.ts";
import type { ResponseRun } from "./run.ts";
import type { RecalledResponse, ResponsesContext } from "./service.ts";
import { isRepeatable, type Item, type WireEvent } from "./types.ts";
import { answerOf } from "../answer/traces.ts";

/** Events that may wait to be sent; then the response waits for its reader. */
const maxUnsentBytes = 64 * 2 ** 10;
/** Requests of one connection. */
const maxWaiting = 1000;
/** Ids beside the type, of clients that send some. */
const maxNoticeBytes = 1024;
/** A shorter request may follow what one that did not fit has followed. */
const tooLong = "context_length_exceeded";
const closeCode = { goingAway: 1001, policy: 1008 };

export function responseSocketRoute(context: ResponsesContext): Route {
  const open = new Set<ResponseSocket>();
  const { closing } = context.active;
  // Connections without a response end at once, the others behind theirs.
  closing.addEventListener("abort", () => {
    for (const connection of open) connection.closeWhenIdle();
  });
  return {
    at: "GET /v1/responses",
    summary: "Opens a WebSocket on which each message is a request (WebSocket mode).",
    status: 101,
    answer: null,
    handler: async (request, reply) => {
      const isAccepted = acceptWebSocket(request, reply, {
        maxPayload: context.config.maxBodyBytes ?? defaultBodyBytes,
        onOpen(socket) {
          const connection = new ResponseSocket(socket, request, context);
          open.add(connection);
          socket.once("close", () => open.delete(connection));
          if (closing.aborted) connection.closeWhenIdle();
        },
      });
      if (isAccepted) return reply;
      reply.header("allow", "POST");
      const message = "/v1/responses takes POST. GET opens a WebSocket, with the header Upgrade.";
      throw new FermataError("method_not_allowed", message, { param: "upgrade" });
    },
  };
}

class ResponseSocket {
  readonly #socket: WebSocket;
  readonly #request: FastifyRequest;
  readonly #context: ResponsesContext;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isBusy = false;
  #closesWhenIdle = false;
  #recalled: RecalledResponse | null = null;
  /** The current response; one in the background goes on without the connection. */
  #run: ResponseRun | null = null;
  /** The last event, if it may come again; and how often nothing followed it. */
  #repeatable: WireEvent | null = null;
  #silences = 0;
  /** Ends what belongs to the connection of the current request. */
  #cancel: ((reason: FermataError) => void) | null = null;

  constructor(socket: WebSocket, request: FastifyRequest, context: ResponsesContext) {
    this.#socket = socket;
    this.#request = request;
    this.#context = context;
    this.#report(false, null);
    this.#watch();
    // What is wrong with a frame: the socket closes with the code that says so.
    socket.on("error", (error) => request.log.info({ reason: error.message }, "WebSocket failed"));
    socket.on("message", (data, isBinary) => void this.#take(data as Buffer, isBinary));
    socket.once("close", () =>
      this.#cancel?.(new FermataError("cancelled", "The client closed the connection.")),
    );
  }

  closeWhenIdle(): void {
    this.#closesWhenIdle = true;
    if (!this.#isBusy) this.#socket.close(closeCode.goingAway, "The server is shutting down.");
  }

  /** Silent connections are kept as long as they answer pings. Agents count events, and no pings: see `SseOptions`. */
  #watch(): void {
    const { keepAliveMs, stalledMs } = sseTimes(this.#context.config);
    let heardAt = performance.now();
    const hear = (): void => void (heardAt = performance.now());
    const timer = setInterval(() => {
      if (performance.now() - heardAt > stalledMs) this.#socket.terminate();
      else this.#socket.ping();
      this.#silences += 1;
      if (this.#repeatable !== null && this.#silences % silencesPerEvent === 0)
        void this.#send(this.#repeatable);
    }, keepAliveMs).unref();
    this.#socket.on("pong", hear).on("ping", hear).on("message", hear);
    this.#socket.once("close", () => clearInterval(timer));
  }

  async #take(data: Buffer, isBinary: boolean): Promise<void> {
    const notice = noticeIn(data);
    if (notice === "response.processed") return;
    if (notice === "response.cancel") {
      const reason = new FermataError("cancelled", "The response was cancelled.");
      this.#run?.cancel(reason);
      this.#cancel?.(reason);
      return;
    }
    const problem = isBinary ? binaryMessage() : this.#tooMany(data);
    if (problem !== null) {
      // Who does not even read why gets no more of it.
      if (this.#socket.bufferedAmount <= maxUnsentBytes) await this.#refuse(problem);
      else this.#socket.close(closeCode.policy, "The refusals are not read.");
      return;
    }
    this.#waiting.push(data);
    this.#waitingBytes += data.length;
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      this.#waitingBytes -= next.length;
      if (this.#socket.readyState !== this.#socket.OPEN) break;
      await this.#answer(next);
      if (this.#closesWhenIdle) break;
    }
    this.#isBusy = false;
    if (this.#closesWhenIdle) this.closeWhenIdle();
  }

  /** An empty message takes memory, too. */
  #tooMany({ length }: Buffer): FermataError | null {
    const limit = this.#context.config.maxBodyBytes ?? defaultBodyBytes;
    const isFull = this.#waiting.length >= maxWaiting;
    if (!isFull && this.#waitingBytes + length <= limit) return null;
    const most = isFull ? `than ${maxWaiting}` : "than --max-body has bytes";
    const message = `More requests wait on this connection ${most}. Wait for the response.`;
    return new FermataError("queue_full", message);
  }

  async #answer(data: Buffer): Promise<void> {
    const { metrics, keys } = this.#context;
    const request = this.#request;
    const startedAt = performance.now();
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    const work = this.#context.active.begin();
    this.#cancel = (reason) => work.controller.abort(reason);
    let status = 200;
    let body: object = {};
    try {
      body = readMessage(await request.server.readJson(request, data));
      if (keys.areNeeded && keys.ofOwner(request.owner) === null) {
        this.#socket.close(closeCode.policy, "The API key is no longer valid.");
        return;
      }
      await request.server.quarantine.admit(request.bodyHash, ended);
      this.#report(true, null);
      await this.#start(body, work.controller.signal, startedAt);
      request.server.quarantine.release(request.bodyHash);
      this.#report(false, request.bodyHash);
    } catch (error) {
      const failure = ofInput(error);
      status = failure.status;
      this.#forget(body, failure);
      await this.#refuse(failure);
      this.#report(false, null);
    } finally {
      this.#cancel = null;
      this.#run = null;
      work.end();
      end();
      metrics.requests.inc({ endpoint: "/v1/responses", status: String(status) });
      const milliseconds = Math.round(performance.now() - startedAt);
      request.log.info({ path: "/v1/responses", status, milliseconds }, "request over a WebSocket");
    }
  }

  /** As at OpenAI, a request that fails ends the chain that it follows. */
  #forget(body: { previous_response_id?: unknown }, { code }: FermataError): void {
    const isFollowed = body.previous_response_id === this.#recalled?.id;
    if (isFollowed && code !== tooLong) this.#recalled = null;
  }

  async #start(body: object, signal: AbortSignal, startedAt: number): Promise<void> {
    await missingServers(this.#context.services.tools, body, this.#request);
    await resumeBeforeModel(body, this.#request.owner, this.#context);
    const run = (context: ResponsesContext): Promise<void> =>
      this.#runWith(context, body, signal, startedAt);
    await withModel(
      wantedModel(body),
      this.#context,
      { signal, keepAliveMs: keepAliveOf(body) },
      run,
    );
  }

  async #runWith(
    context: ResponsesContext,
    body: object,
    signal: AbortSignal,
    startedAt: number,
  ): Promise<void> {
    const { owner, log } = this.#request;
    const { target, body: request } = await readRequest(body, parseResponsesRequest, context);
    const recalled = this.#recalled;
    const started = await context.responses.start(request, {
      ...context,
      target,
      answer: answerOf(this.#request),
      log,
      startedAt,
      owner,
      signal,
      preparation: new Preparation(),
      wire: body,
      recalled,
    });
    // Only requests without `stream` resume, and these have it.
    if (started.kind === "resumed") return;
    const { run, items } = started;
    this.#run = run;
    try {
      for await (const event of run.read(-1)) {
        this.#repeatable = isRepeatable(event) ? event : null;
        this.#silences = 0;
        await this.#send(event);
      }
    } finally {
      this.#repeatable = null;
    }
    const { status, store, id, output, error } = run.response;
    if (request.previousResponseId !== null && error?.code !== tooLong) this.#recalled = null;
    const isWhole = status === "completed" || status === "incomplete";
    if (isWhole && !store)
      this.#recalled = { id, items: [...items, ...(output as unknown as Item[])] };
  }

  /** Resolves when the client can take more, or is gone. */
  async #send(event: object): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    let resolve = (): void => {};
    const sent = new Promise<void>((settle) => (resolve = settle));
    socket.send(JSON.stringify(event), () => resolve());
    if (socket.bufferedAmount <= maxUnsentBytes) return;
    const { othersWait } = this.#request.server;
    const taken = watchReader(sseTimes(this.#context.config), othersWait, () => socket.terminate());
    socket.once("close", resolve);
    await sent;
    taken();
    socket.off("close", resolve);
  }

  async #refuse(error: FermataError): Promise<void> {
    logError(error, this.#request);
    const { status, type, code, message, param } = error;
    const nested = { type, code, message, param };
    await this.#send({ type: "error", status, code, message, param, error: nested });
  }

  /** A crash of this process ends the connection, without more words: their frames are this process's. */
  #report(isBusy: boolean, answered: string | null): void {
    const { server, raw, id, bodyHash } = this.#request;
    const request = { requestId: id, bodyHash };
    const state = isBusy
      ? { kind: "answering" as const, request }
      : { kind: "idle" as const, answered };
    server.connectionReports?.report(raw.socket, state);
  }
}

function binaryMessage(): FermataError {
  const message = "A message must be text. Send JSON in text frames.";
  return new FermataError("invalid_request", message);
}

/**
 * Messages that are no requests, and get no answer: a client would take it for that of its next request.
 * `response.cancel` is not OpenAI's: it has no message that ends a response but the end of the connection.
 * By `response.processed` versions of codex say that they have read a response.
 */
const notices = ["response.cancel", "response.processed"] as const;

function noticeIn(data: Buffer): (typeof notices)[number] | undefined {
  if (data.length > maxNoticeBytes) return undefined;
  const found = notices.find((type) => data.includes(`"${type}"`));
  if (found === undefined) return undefined;
  try {
    const message: unknown = JSON.parse(data.toString("utf8"));
    return isJsonObject(message) && message["type"] === found ? found : undefined;
  } catch {
    return undefined; // who reads it as a request says what is wrong
  }
}

/** @returns a body as POST takes it, for a stream @throws FermataError of status 400 */
function readMessage(value: unknown): object {
  if (!isJsonObject(value))
    throw new FermataError("invalid_json", "The message is no JSON object. Send one.");
  const { type, generate = true, stream: _, fermata = {}, ...body } = value;
  if (type !== "response.create")
    throw fieldError("invalid_value", "type", "is not known", 'Send "response.create"');
  if (typeof generate !== "boolean")
    throw fieldError("invalid_type", "generate", "must be true or false", "Leave it out");
  // The prompt is read into the cache, for a request that names this response as its previous one.
  const limit = generate ? {} : { max_output_tokens: 0 };
  // The connection's next message would wait for the outputs that it brings.
  const own = isJsonObject(fermata) ? { tools: "close", ...fermata } : fermata;
  return { ...body, ...limit, fermata: own, stream: true };
}
