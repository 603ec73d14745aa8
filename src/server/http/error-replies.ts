/** Every failure leaves in OpenAI's shape, or in that of its route's wire. */

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { FermataError, type ErrorCode } from "../../errors.ts";
import { changesModels } from "./route-paths.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whose error shape the route has. Default: OpenAI's. */
    wire?: ErrorWire;
    /** Anthropic's clients, which say so in a header, call it too and get Anthropic's shape. */
    isAnthropicToo?: boolean;
  }
}

/** Seconds after which a client may try again that met a full queue, a busy server or one that restarts. */
const retryAfterSeconds = 1;
const passing: ReadonlySet<ErrorCode> = new Set(["queue_full", "schema_timeout", "engine_closed"]);

export function installErrorHandler(app: FastifyInstance): void {
  app.setErrorHandler((error: unknown, request, reply) =>
    sendError(toFermataError(error), request, reply),
  );
}

export function sendError(
  error: FermataError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  logError(error, request);
  if (passing.has(error.code)) reply.header("retry-after", retryAfterSeconds);
  if (error.code === "unauthorized") reply.header("www-authenticate", "Bearer");
  const { raw } = reply;
  // Fastify ends the connection of a body that it refuses; see `installUnreadBodies`.
  if (reply.hasHeader("connection") && raw.shouldKeepAlive && !raw.hasHeader("connection"))
    reply.header("connection", "keep-alive");
  const wire = wireOf(request);
  if (wire === "anthropic") reply.header("request-id", request.id);
  const body = errorBodyOf(wire, error, request.id);
  return reply.code(error.status).send(body);
}

/** Faults with their stack, refusals with their reason. */
export function logError(error: FermataError, request: Pick<FastifyRequest, "log">): void {
  const { code, param, cause, message } = error;
  const isFault = code === "internal_error" || code === "decode_failed";
  if (isFault) request.log.error({ code, err: cause ?? error }, "request failed");
  else request.log.info({ code, param, reason: message }, "request refused");
}

/** What is not ours becomes `internal_error` with the fault as cause: for the log, never for the client. */
export function toFermataError(error: unknown): FermataError {
  if (error instanceof FermataError) return error;
  const { code, statusCode = 500, message } = error as Partial<FastifyError>;
  if (statusCode >= 400 && statusCode < 500) {
    const known = frameworkErrors[code ?? ""];
    if (known !== undefined)
      return new FermataError(known.code, known.message, { param: known.param, cause: error });
    return new FermataError("invalid_request", message ?? "The request is not valid.", {
      cause: error,
    });
  }
  return new FermataError(
    "internal_error",
    "Something went wrong inside the server; its log has the details.",
    {
      cause: error,
    },
  );
}

interface FrameworkError {
  code: ErrorCode;
  message: string;
  param?: string;
}

const frameworkErrors: Record<string, FrameworkError> = {
  FST_ERR_BAD_URL: {
    code: "invalid_request",
    message: "The path is not a valid URL path. Encode what is not a letter or digit.",
    param: "path",
  },
  FST_ERR_MAX_PARAM_LENGTH: {
    code: "not_found",
    message: "Nothing has this name: it is longer than any id.",
    param: "path",
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: "invalid_request",
    message: "The body and its content-length have different lengths. Send the length in bytes.",
    param: "content-length",
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: "unsupported_media_type",
    message:
      'The body\'s type is not supported. Send JSON with the header "content-type: application/json".',
    param: "content-type",
  },
};

/** On this the SDK's tool runner goes on with the whole history in each request. */
const threadsUnsupported = { error_code: "thread_unsupported_request", unsupported: ["thread"] };

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** Anthropic's words, which its clients look for before they compact a conversation. */
function tooLongOf({ size }: FermataError): string {
  if (size === null) return "";
  return `prompt is too long: ${size.promptTokens} tokens > ${size.contextSize} maximum. `;
}

/** `code` and `param` are not Anthropic's: Fermata's stable code and the field at fault. */
export function anthropicErrorBody(error: FermataError, requestId: string) {
  const { message, code, param, status } = error;
  const type = typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  const details = param === "thread" ? { details: threadsUnsupported } : {};
  return {
    type: "error",
    error: { type, message: `${tooLongOf(error)}${message}`, code, param, ...details },
    request_id: requestId,
  };
}

/** The counts are llama-server's, of a prompt that does not fit. */
export function errorBody({ message, type, param, code, size }: FermataError) {
  const counts = size && { n_prompt_tokens: size.promptTokens, n_ctx: size.contextSize };
  return { error: { message, type, param, code, ...counts } };
}

/** Ollama's has the text alone; its clients pass over what else there is. */
export function ollamaErrorBody({ message, code, param }: FermataError) {
  return { error: message, code, param };
}

/** Whose shape a route's errors have. Undefined: OpenAI's. */
export type ErrorWire = "anthropic" | "ollama" | undefined;

/** Absent here, as `changesModels` are. Their clients read the errors all the same. */
const absentOfAnthropic = /^(\/v1)?\/messages\//u;

function wireOf({ routeOptions, is404, originalUrl, headers }: FastifyRequest): ErrorWire {
  if (!is404) {
    const { wire, isAnthropicToo } = routeOptions.config ?? {};
    return isAnthropicToo === true && "anthropic-version" in headers ? "anthropic" : wire;
  }
  if (changesModels.test(originalUrl)) return "ollama";
  return absentOfAnthropic.test(originalUrl) ? "anthropic" : undefined;
}

export function errorBodyOf(wire: ErrorWire, error: FermataError, requestId: string): object {
  if (wire === "anthropic") return anthropicErrorBody(error, requestId);
  return wire === "ollama" ? ollamaErrorBody(error) : errorBody(error);
}
