/**
 * Answers that come before the end of a body. Most clients read none before they have sent all, and a connection that is
 * closed while bytes of them are unread takes the answer with it.
 */

import type { IncomingMessage } from "node:http";
import { finished } from "node:stream";
import type { FastifyInstance } from "fastify";

/** A client that sends more behind the answer is left. */
const droppedBytes = 64 * 2 ** 20;
/** For the rest of a body to come, where the connection ends with the answer. */
const restMs = 5000;

/** The rest is read and dropped: before the answer, where the connection ends with it. */
export function installUnreadBodies(app: FastifyInstance): void {
  app.addHook("onSend", async ({ raw }, reply) => {
    if (raw.complete || raw.destroyed) return;
    drop(raw);
    if (!reply.raw.shouldKeepAlive) await ended(raw);
  });
}

function drop(body: IncomingMessage): void {
  let dropped = 0;
  body.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > droppedBytes) body.destroy();
  });
  // It may have been paused.
  body.resume();
}

function ended(body: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, restMs).unref();
    finished(body, { writable: false }, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
