/** Calls the API. Every failure is an ApiError with a readable message. */

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** When the request was sent, by `performance.now()`. */
  readonly sentAt: number;

  constructor(status: number, code: string, message: string, sentAt: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.sentAt = sentAt;
  }
}

/** For a server that did not answer. */
export const unreachable = "unreachable";

interface RequestOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** @throws ApiError; its status is 0 when the server does not answer */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** The response, after its status was checked. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, signal = null } = options;
  const headers = { ...options.headers };
  if (body !== undefined) headers["content-type"] = "application/json";
  const sentAt = performance.now();
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiError(0, unreachable, "The server does not answer. Is it still running?", sentAt);
  }
  if (!response.ok) throw await errorOf(response, sentAt);
  return response;
}

async function errorOf(response: Response, sentAt: number): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return new ApiError(response.status, error.code, error.message, sentAt);
  } catch {
    const message = `The server answered with status ${response.status}.`;
    return new ApiError(response.status, "unknown", message, sentAt);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
