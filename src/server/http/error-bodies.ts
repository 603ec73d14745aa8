/** Errors in the shapes of OpenAI and of Anthropic. */

import type { FermataError } from "../../errors.ts";

export interface AnthropicErrorBody {
  type: "error";
  error: {
    type: string;
    message: string;
    /** Not Anthropic's: Fermata's stable code and the field at fault. */
    code: string;
    param: string | null;
    details?: object;
  };
  request_id: string;
}

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

export function anthropicErrorBody(error: FermataError, requestId: string): AnthropicErrorBody {
  const { message, code, param, status } = error;
  const type = typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  const details = param === "thread" ? { details: threadsUnsupported } : {};
  return {
    type: "error",
    error: { type, message, code, param, ...details },
    request_id: requestId,
  };
}

export interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

export function errorBody({ message, type, param, code }: FermataError): ErrorBody {
  return { error: { message, type, param, code } };
}
