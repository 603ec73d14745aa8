/**
 * Tells what each connection is in the middle of, so that a process which outlives this one can end it
 * properly: with an error response where none began, with an error event where a stream runs.
 */

import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { FermataError } from "../../errors.ts";
import { errorBody, errorBodyOf, ollamaErrorBody } from "./error-replies.ts";
import { rawResponse } from "./broken-requests.ts";

/** How a stream's messages stand in its body: as server-sent events, or each as a line. */
export type Framing = "events" | "lines";

/** What a connection works on. */
export interface InFlight {
  requestId: string;
  /** Null: the body has not come yet, or there is none. */
  bodyHash: string | null;
}

export type ConnectionState =
  /** `answered`: hash of the body whose answer is out. */
  | { kind: "idle"; answered: string | null }
  /** Nothing was answered yet. `lastWords`: a whole response. */
  | { kind: "waiting"; lastWords: string; request: InFlight }
  /** A response is being written that only its writer can end. */
  | { kind: "answering"; request: InFlight }
  /** `lastWords`: what ends the stream, framed as its response is. */
  | { kind: "streaming"; lastWords: string; request: InFlight };

export interface ConnectionReports {
  report(socket: Socket, state: ConnectionState): void;
}

declare module "fastify" {
  interface FastifyInstance {
    connectionReports: ConnectionReports | null;
  }
}

export function crashError(): FermataError {
  const message = "The engine ended abnormally and is being restarted. Send the request again.";
  return new FermataError("engine_crashed", message);
}

export function installConnectionReports(
  app: FastifyInstance,
  reports: ConnectionReports | null,
): void {
  app.decorate("connectionReports", reports);
  if (reports === null) return;
  const reportWaiting = (request: FastifyRequest): void => {
    const error = crashError();
    const body = errorBodyOf(request.routeOptions.config?.wire, error, request.id);
    const headers = [`x-request-id: ${request.id}`];
    // What may be to blame is not asked to come back.
    if (request.bodyHash === null) headers.push("retry-after: 1");
    const lastWords = rawResponse(error.status, body, headers);
    reports.report(request.raw.socket, {
      kind: "waiting",
      lastWords,
      request: inFlight(request),
    });
  };
  app.addHook("onRequest", async (request) => reportWaiting(request));
  app.addHook("preValidation", async (request) => {
    if (request.bodyHash !== null) reportWaiting(request);
  });
  app.addHook("onSend", async (request) => {
    reports.report(request.raw.socket, { kind: "answering", request: inFlight(request) });
  });
  app.addHook("onResponse", async (request, { statusCode, raw }) => {
    const isAnswered = statusCode < 400 && raw.writableFinished;
    const answered = isAnswered ? request.bodyHash : null;
    reports.report(request.raw.socket, { kind: "idle", answered });
  });
}

function inFlight({ id, bodyHash }: FastifyRequest): InFlight {
  return { requestId: id, bodyHash };
}

/**
 * To be called once the headers are set and before they are sent. The last words of events are an error in
 * OpenAI's and Anthropic's formats at once, those of lines are one in Ollama's; none where the client reads on
 * elsewhere.
 */
export function reportStream(reply: FastifyReply, isResumable: boolean, framing: Framing): void {
  const { raw: response, server, request } = reply;
  if (server.connectionReports === null) return;
  const error = framing === "lines" ? errorLine() : errorEvent();
  const text = isResumable ? "" : error;
  const chunk = text === "" ? "" : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const lastWords = response.chunkedEncoding ? `${chunk}0\r\n\r\n` : text;
  server.connectionReports.report(request.raw.socket, {
    kind: "streaming",
    lastWords,
    request: inFlight(request),
  });
}

function errorEvent(): string {
  const { error } = errorBody(crashError());
  const { code, message, param } = error;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error, code, message, param })}\n\n`;
}

function errorLine(): string {
  return `${JSON.stringify(ollamaErrorBody(crashError()))}\n`;
}
