/**
 * Tells what each connection is in the middle of, so that a process which outlives this one can end it
 * properly: with an error response where none began, with an error event where a stream runs.
 */

import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply } from "fastify";
import { FermataError } from "../../errors.ts";
import { errorBody, errorBodyOf, ollamaErrorBody } from "./error-replies.ts";
import { rawResponse } from "./broken-requests.ts";

/** How a stream's messages stand in its body: as server-sent events, or each as a line. */
export type Framing = "events" | "lines";

export type ConnectionState =
  | { kind: "idle" }
  /** Nothing was answered yet. `lastWords`: a whole response. */
  | { kind: "waiting"; lastWords: string }
  /** A response is being written that only its writer can end. */
  | { kind: "answering" }
  /** `lastWords`: what ends the stream, framed as its response is. */
  | { kind: "streaming"; lastWords: string };

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
  app.addHook("onRequest", async (request) => {
    const error = crashError();
    const body = errorBodyOf(request.routeOptions.config?.wire, error, request.id);
    const headers = [`x-request-id: ${request.id}`, "retry-after: 1"];
    const lastWords = rawResponse(error.status, body, headers);
    reports.report(request.raw.socket, { kind: "waiting", lastWords });
  });
  app.addHook("onSend", async (request) => {
    reports.report(request.raw.socket, { kind: "answering" });
  });
  app.addHook("onResponse", async (request) => {
    reports.report(request.raw.socket, { kind: "idle" });
  });
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
  server.connectionReports.report(request.raw.socket, { kind: "streaming", lastWords });
}

function errorEvent(): string {
  const { error } = errorBody(crashError());
  const { code, message, param } = error;
  return `event: error\ndata: ${JSON.stringify({ type: "error", error, code, message, param })}\n\n`;
}

function errorLine(): string {
  return `${JSON.stringify(ollamaErrorBody(crashError()))}\n`;
}
