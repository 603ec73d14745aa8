/** Server-sent events with back-pressure. */

import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { reportStream } from "./connection-reports.ts";

export interface SseMessage {
  /** What a client that reconnects sends as Last-Event-ID. */
  id?: string;
  /** Name of the event; clients of OpenAI's chat format want none. */
  event?: string;
  data: string;
}

export interface SseOptions {
  /** Silence after which a comment is sent. */
  keepAliveMs: number;
  /** A client that takes nothing for so long is given up. */
  stalledMs: number;
  /** Its client reads on over another connection, so that its end alone says nothing. */
  isResumable?: boolean;
}

const keepAliveComment = ": keep-alive\n\n";

export class SseStream {
  readonly #response: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #stalledMs: number;

  /** Takes the response over from fastify and sends the headers. */
  constructor(reply: FastifyReply, { keepAliveMs, stalledMs, isResumable = false }: SseOptions) {
    reply.hijack();
    this.#response = reply.raw;
    this.#stalledMs = stalledMs;
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) this.#response.setHeader(name, value);
    }
    this.#response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      connection: "keep-alive",
      "x-accel-buffering": "no",
    });
    reportStream(reply, isResumable);
    this.#response.flushHeaders();
    this.#keepAlive = setInterval(() => this.#sendKeepAlive(), keepAliveMs);
    this.#keepAlive.unref();
  }

  /**
   * One event, one write: some clients parse each network chunk by itself. Resolves when the client
   * can take more, or is gone: a slow reader slows its own generation only.
   */
  async send(message: SseMessage): Promise<void> {
    if (!this.#isOpen()) return;
    this.#keepAlive.refresh();
    if (!this.#response.write(sseText(message))) await this.#drained();
  }

  end(): void {
    clearInterval(this.#keepAlive);
    if (this.#isOpen()) this.#response.end();
  }

  #isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  /** A comment, which every SSE parser skips. Not for a client that has unread bytes already. */
  #sendKeepAlive(): void {
    if (this.#isOpen() && !this.#response.writableNeedDrain) this.#response.write(keepAliveComment);
  }

  #drained(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      // Its sequence keeps a place that others wait for.
      const stalled = setTimeout(() => response.destroy(), this.#stalledMs).unref();
      const done = (): void => {
        clearTimeout(stalled);
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

function sseText({ id, event, data }: SseMessage): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  const eventLine = event === undefined ? "" : `event: ${event}\n`;
  return `${idLine}${eventLine}data: ${data}\n\n`;
}
