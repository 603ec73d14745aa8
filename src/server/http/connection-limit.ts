/** How many clients may be connected: each takes memory and a file of the process, whether it asks something or not. */

import type { FastifyInstance } from "fastify";
import type { Socket } from "node:net";

const defaultConnections = 2048;
const warnEveryMs = 60_000;

/** One too many is closed at once, and the log says so. It also holds for connections that a supervisor accepts. */
export function installConnectionLimit(app: FastifyInstance, limit = defaultConnections): void {
  const open = new Set<Socket>();
  let warnedAt = -Infinity;
  app.server.on("connection", (socket: Socket) => {
    // It comes again with each request that offers another protocol.
    if (open.has(socket)) return;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    if (open.size <= limit) return;
    socket.destroy();
    if (performance.now() - warnedAt < warnEveryMs) return;
    warnedAt = performance.now();
    app.log.warn({ connections: limit }, "too many connections: new ones are closed");
  });
}
