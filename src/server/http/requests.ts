/** Requests while they run, and their connections: ids, lines in the log, the signal that stops their work, and how they end when the server closes. */

import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply } from "fastify";
import { setTimeout } from "node:timers/promises";
import { FermataError } from "../../errors.ts";
import type { Socket } from "node:net";
import { isWebSocketUpgrade } from "./access.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whoever watches the server asks it, while it closes too. */
    answersToTheEnd?: true;
    /** What running requests wait for: served while the server drains, until they are aborted. */
    answersWhileDraining?: true;
  }
}

const header = "x-request-id";
const harmlessId = /^[\w.:@/+=-]{1,128}$/;

export function createRequestId(request: Pick<IncomingMessage, "headers">): string {
  const given = request.headers[header];
  return typeof given === "string" && harmlessId.test(given)
    ? given
    : `req_${randomBytes(12).toString("hex")}`;
}

/** The id is the client's, if it is a harmless one, else a new one. */
export function installRequestId(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.header(header, request.id);
    if (request.routeOptions.config?.wire === "anthropic") reply.header("request-id", request.id);
  });
}

/** Which of several servers behind a proxy answered. A client may send it back, to be answered by the same one. */
export function installReplicaName(app: FastifyInstance, replica: string | undefined): void {
  if (replica === undefined) return;
  app.addHook("onRequest", async (_request, reply) => {
    reply.header("x-fermata-replica", replica);
  });
}

const maxPathLength = 200;

/** What was asked and how it went, never what was said. */
export function installAccessLog(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode, writableFinished } = reply.raw;
    request.log.info(
      {
        method: request.method,
        // Without the query: it is the client's, and may hold anything.
        path: request.url.split("?", 1)[0]!.slice(0, maxPathLength),
        status: statusCode,
        milliseconds: Math.round(reply.elapsedTime),
        ...(writableFinished ? {} : { aborted: true }),
      },
      "request",
    );
  });
}

const pollMs = 20;
/** For a client to take the end of its answer. */
const farewellMs = 2000;

export class ActiveRequests {
  readonly #controllers = new Set<AbortController>();
  readonly #closing = new AbortController();
  #isLeaving = false;
  #isDrained = false;

  /** From the moment that the server is to close: first it still serves, then it drains. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  beginLeaving(): void {
    this.#isLeaving = true;
  }

  /** Aborted when the server begins to close, before the drain. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The time to end is over: what still ran is aborted. */
  get isDrained(): boolean {
    return this.#isDrained;
  }

  beginClosing(): void {
    this.#closing.abort();
  }

  /**
   * Aborted when the client goes before the whole response is out, whether it waits for the first byte
   * or reads a stream, and when the server closes.
   */
  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const leave = (): void =>
      controller.abort(new FermataError("cancelled", "The client closed the connection."));
    // It left while its request was prepared: nothing will tell of it any more.
    if (reply.raw.destroyed) {
      leave();
      return controller.signal;
    }
    this.#controllers.add(controller);
    reply.raw.once("close", () => {
      this.#controllers.delete(controller);
      if (!reply.raw.writableFinished) leave();
    });
    return controller.signal;
  }

  /** Work that goes on without a client. Aborted when the server closes; `end` it when it is done. */
  begin(): { controller: AbortController; end(): void } {
    const controller = new AbortController();
    this.#controllers.add(controller);
    return { controller, end: () => this.#controllers.delete(controller) };
  }

  /** Resolves when nothing runs, or after `milliseconds`. */
  async idle(milliseconds: number): Promise<void> {
    const deadline = performance.now() + milliseconds;
    while (this.#controllers.size > 0 && performance.now() < deadline) {
      await setTimeout(Math.min(pollMs, milliseconds));
    }
  }

  abortAll(): void {
    this.#isDrained = true;
    for (const controller of this.#controllers) controller.abort(closingError());
  }
}

/**
 * When the server is to close, proxies have `noticeMs` to see that GET /ready fails; requests are served, on connections
 * that end with them. From then on new requests are refused, but for outputs and decisions that running ones wait for; those that run have
 * `drainMs` to end, then they are aborted.
 * Behind a supervisor that has closed the port at the end of the notice, what still comes over open connections is served:
 * a proxy sends it nowhere else.
 */
export function installActiveRequests(
  app: FastifyInstance,
  { noticeMs = 0, drainMs = 0 }: { noticeMs?: number; drainMs?: number },
): ActiveRequests {
  const requests = new ActiveRequests();
  const connections = new Connections(app);
  app.addHook("onRequest", async (request) => {
    if (!requests.closing.aborted) return;
    const { answersToTheEnd, answersWhileDraining } = request.routeOptions.config ?? {};
    const isServed = answersToTheEnd ?? (answersWhileDraining && !requests.isDrained);
    if (isServed !== true) throw closingError();
  });
  app.addHook("preClose", async () => {
    requests.beginLeaving();
    if (noticeMs > 0) await setTimeout(noticeMs);
    connections.endWhenAnswered();
    if (noticeMs === 0 || app.server.listening) requests.beginClosing();
    await requests.idle(drainMs);
    requests.beginClosing();
    requests.abortAll();
    // Their last words are on the way.
    await Promise.all([requests.idle(farewellMs), connections.answered(farewellMs)]);
    connections.endSilent();
  });
  return requests;
}

function closingError(): FermataError {
  return new FermataError("engine_closed", "The server is shutting down. Try again later.");
}

/**
 * Node closes idle connections once, at the close. It takes one for idle whose answer is written but not yet out, and cuts
 * it off; and one whose answer comes later stays for as long as it is kept alive.
 */
class Connections {
  /** How many answers are not yet out. Null: it has not asked for anything. Browsers open some ahead. */
  readonly #waiting = new Map<Socket, number | null>();
  #isEnding = false;

  constructor(app: FastifyInstance) {
    app.server.on("connection", (socket: Socket) => {
      // Node tells of a connection again when a request for an upgrade was passed over.
      if (this.#waiting.has(socket)) return;
      this.#waiting.set(socket, null);
      socket.once("close", () => this.#waiting.delete(socket));
    });
    // WebSockets are ended by what serves them.
    app.server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
      if (isWebSocketUpgrade(request)) this.#waiting.delete(socket);
    });
    app.addHook("onRequest", async ({ raw: { socket } }, { raw: answer }) => {
      const waiting = this.#waiting.get(socket);
      if (waiting === undefined) return;
      this.#waiting.set(socket, (waiting ?? 0) + 1);
      answer.once("close", () => this.#answered(socket));
    });
  }

  /** From now on a connection ends with its last answer; those that wait for none end now. */
  endWhenAnswered(): void {
    this.#isEnding = true;
    for (const [socket, waiting] of this.#waiting) if (waiting === 0) socket.destroySoon();
  }

  /** Resolves when all answers are out, or after `milliseconds`. */
  async answered(milliseconds: number): Promise<void> {
    const deadline = performance.now() + milliseconds;
    while (this.#waitsAny() && performance.now() < deadline) await setTimeout(pollMs);
  }

  /** Before their first request Node does not count them as idle, so a close waits for them. */
  endSilent(): void {
    for (const [socket, waiting] of this.#waiting) if (waiting === null) socket.destroy();
  }

  #answered(socket: Socket): void {
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined) return;
    this.#waiting.set(socket, waiting! - 1);
    if (this.#isEnding && waiting === 1) socket.destroySoon();
  }

  #waitsAny(): boolean {
    return [...this.#waiting.values()].some((waiting) => waiting !== null && waiting > 0);
  }
}
