/** Connections of clients: what they wait for, and how they end when the server closes. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { isWebSocketUpgrade } from "./access.ts";

const pollMs = 20;

/**
 * Node closes idle connections once, at the close. It takes one for idle whose answer is written but not yet out, and cuts
 * it off; and one whose answer comes later stays for as long as it is kept alive.
 */
export class Connections {
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
