/** Streams of messages with back-pressure: server-sent events, or one JSON value per line (NDJSON). */

import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { reportStream, type Framing } from "./connection-reports.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** Requests wait for a place of the engine. */
    othersWait(): boolean;
  }
}

export interface SseMessage {
  /** A client that reconnects sends it as Last-Event-ID. */
  id?: string;
  /** Name of the event; clients of OpenAI's chat format want none. */
  event?: string;
  data: string;
}

/** A message without a name. */
export function jsonMessage(value: object): SseMessage {
  return { data: JSON.stringify(value) };
}

/** With the name that its `type` is. */
export function typedMessage<Value extends { type: string }>(value: Value): SseMessage {
  return { event: value.type, data: JSON.stringify(value) };
}

export interface SseOptions {
  /** Default: events. */
  framing?: Framing | undefined;
  /** Silence after which a comment is sent; lines have none. */
  keepAliveMs: number;
  /**
   * In place of every fourth comment: an event that tells nothing new. Agents leave a stream whose parser has given
   * them no event for minutes, and it gives them no comments. Claude Code counts only 30 of them in a row.
   */
  waiting?: (() => SseMessage | undefined) | undefined;
  /** A client that reads nothing for this long is disconnected. */
  stalledMs: number;
  /** The same while other requests wait for a place. */
  crowdedStalledMs: number;
  /** The client may continue over another connection, so the end of this one means nothing. */
  isResumable?: boolean;
}

const contentTypes = {
  events: "text/event-stream; charset=utf-8",
  lines: "application/x-ndjson",
};
const keepAliveComment = ": keep-alive\n\n";
export const silencesPerEvent = 4;

export class SseStream {
  readonly #response: ServerResponse;
  readonly #framing: Framing;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #waiting: (() => SseMessage | undefined) | undefined;
  /** Since the last message. */
  #silences = 0;
  readonly #times: Pick<SseOptions, "stalledMs" | "crowdedStalledMs">;
  readonly #othersWait: () => boolean;

  /** Takes the response over from fastify and sends the headers. */
  constructor(
    reply: FastifyReply,
    { keepAliveMs, waiting, isResumable = false, framing = "events", ...times }: SseOptions,
  ) {
    reply.hijack();
    this.#framing = framing;
    this.#response = reply.raw;
    this.#waiting = waiting;
    this.#times = times;
    this.#othersWait = reply.server.othersWait;
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) this.#response.setHeader(name, value);
    }
    this.#response.writeHead(200, {
      "content-type": contentTypes[framing],
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
    reportStream(reply, isResumable, framing);
    this.#response.flushHeaders();
    this.#keepAlive = setInterval(() => this.#sendKeepAlive(), keepAliveMs).unref();
    // The headers are all that it asks for.
    if (reply.request.method === "HEAD") this.end();
  }

  /**
   * One event, one write: some clients parse each network chunk by itself. Resolves when the client
   * can take more, or is gone: a slow reader slows its own generation only.
   */
  async send(message: SseMessage): Promise<void> {
    if (!this.#isOpen()) return;
    this.#keepAlive.refresh();
    this.#silences = 0;
    if (!this.#response.write(this.#textOf(message))) await this.#drained();
  }

  end(): void {
    clearInterval(this.#keepAlive);
    if (this.#isOpen()) this.#response.end();
  }

  #isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  #textOf(message: SseMessage): string {
    return this.#framing === "lines" ? `${message.data}\n` : sseText(message);
  }

  /** Not for a client that has unread bytes already. */
  #sendKeepAlive(): void {
    if (!this.#isOpen() || this.#response.writableNeedDrain) return;
    this.#silences += 1;
    const event = this.#silences % silencesPerEvent === 0 ? this.#waiting?.() : undefined;
    if (event !== undefined) this.#response.write(this.#textOf(event));
    else if (this.#framing === "events") this.#response.write(keepAliveComment);
  }

  #drained(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const taken = watchReader(this.#times, this.#othersWait, () => response.destroy());
      const done = (): void => {
        taken();
        response.off("drain", done);
        response.off("close", done);
        resolve();
      };
      response.once("drain", done);
      response.once("close", done);
      if (response.destroyed) done();
    });
  }
}

/** Gives a reader up that takes nothing. Its sequence keeps a place: the sooner, if others wait for one. @returns to be called when it has taken something */
export function watchReader(
  { stalledMs, crowdedStalledMs }: Pick<SseOptions, "stalledMs" | "crowdedStalledMs">,
  othersWait: () => boolean,
  giveUp: () => void,
): () => void {
  const since = performance.now();
  const watch = setInterval(() => {
    if (performance.now() - since >= stalledMs || othersWait()) giveUp();
  }, crowdedStalledMs).unref();
  return () => clearInterval(watch);
}

function sseText({ id, event, data }: SseMessage): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  const eventLine = event === undefined ? "" : `event: ${event}\n`;
  return `${idLine}${eventLine}data: ${data}\n\n`;
}
