/** What no route ever sees: connections beyond the limit, and what is not HTTP, or too large or slow to become a request. */

import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { FermataError } from "../../errors.ts";
import { errorBody } from "./error-replies.ts";

/** For all headers of a request together, in bytes. */
export const maxHeaderSize = 32 * 1024;

/** Answers on the bare socket and closes it. */
export function answerBrokenRequest(
  fault: Error & { code?: string },
  socket: Pick<Socket, "writable" | "end" | "destroy">,
): void {
  // The client is gone; nobody reads.
  if (fault.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const error = errorFor(fault.code);
  socket.end(rawResponse(error.status, errorBody(error)));
}

function errorFor(code: string | undefined): FermataError {
  if (code === "HPE_HEADER_OVERFLOW") {
    const message = `The headers are larger than ${maxHeaderSize / 1024} KiB. Send fewer or shorter ones.`;
    return new FermataError("headers_too_large", message, { param: "headers" });
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    const message = "The request did not arrive in time. Send it again.";
    return new FermataError("request_timeout", message);
  }
  return new FermataError("invalid_request", "This is not a valid HTTP/1.1 request.");
}

/** A whole HTTP response, for a connection that no server answers. */
export function rawResponse(status: number, body: object, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
    "connection: close",
    ...headers,
    "",
    text,
  ].join("\r\n");
}

const defaultConnections = 2048;
const warnEveryMs = 60_000;

/** A client takes memory and a file of the process, whether it asks something or not. One too many is closed at once, and the log says so. It also holds for connections that a supervisor accepts. */
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
