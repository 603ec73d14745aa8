/** WebSockets: the upgrade is a GET request that passes the hooks of its route, so that a refusal is an HTTP answer. */

import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type WebSocket, WebSocketServer } from "ws";
import { isWebSocketUpgrade } from "./access.ts";

/** For a client to answer the close frame. */
const closing = { closeTimeout: 2000 };
/** The bytes that came behind the upgrade's headers. */
const heads = new WeakMap<IncomingMessage, Buffer>();

export function installWebSockets(app: FastifyInstance): void {
  app.server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isWebSocketUpgrade(request)) return continueAsHttp(app.server, { request, socket, head });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once("finish", () => socket.end());
    heads.set(request, head);
    app.routing(request, response);
  });
}

/** False: the request is a plain GET. A wrong handshake gets a 400, and `onOpen` is not called. */
export function acceptWebSocket(
  request: FastifyRequest,
  reply: FastifyReply,
  options: { maxPayload: number; onOpen: (socket: WebSocket) => void },
): boolean {
  const { raw } = request;
  const head = heads.get(raw);
  if (head === undefined) return false;
  reply.hijack();
  reply.raw.detachSocket(raw.socket);
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    ...closing,
    maxPayload: options.maxPayload,
  });
  server.handleUpgrade(raw, raw.socket, head, options.onOpen);
  return true;
}

/**
 * A server may pass over an upgrade that it does not know (Java's client offers HTTP/2 so). Node no longer reads the
 * request's body then, so the request is read again without the offer.
 */
function continueAsHttp(
  server: Server,
  { request, socket, head }: { request: IncomingMessage; socket: Socket; head: Buffer },
): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  const { rawHeaders } = request;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (name === "upgrade" || name === "connection" || name === "http2-settings") continue;
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}
