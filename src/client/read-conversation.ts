/** A run's events over as many connections as it takes: none is lost, none comes twice. */

import { pause } from "./pause.ts";
import { SseParser } from "./sse-parser.ts";
import type { ConversationEvent } from "./types.ts";

export interface ReadOptions {
  /** Of the last event that was read before; those after it are read. */
  lastEventId?: string;
  signal?: AbortSignal;
  /** An API key's header, for example. A browser sends its cookie by itself. */
  headers?: Record<string, string>;
  fetch?: typeof fetch;
  /** Failed attempts in a row after which it gives up. Default 10: about a minute. */
  maxAttempts?: number;
  /** Told before each wait, and when a connection stands again. */
  onConnection?: (state: { type: "open" } | { type: "lost"; retryInMs: number }) => void;
}

export interface ReadEvent {
  id: string;
  event: ConversationEvent;
}

/** The server refused the stream, sent something else, or could not be reached any more (`status` 0). */
export class StreamError extends Error {
  override readonly name = "StreamError";
  readonly status: number;
  readonly code: string;

  constructor(message: string, status: number, code: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const firstWaitMs = 250;
const longestWaitMs = 10_000;

/**
 * Ends when the run has ended and everything was read. Leaving the loop closes the connection; the run
 * goes on. @throws StreamError, or the reason of `signal`
 */
export async function* readConversation(
  url: string,
  options: ReadOptions = {},
): AsyncGenerator<ReadEvent, void, void> {
  const { signal, maxAttempts = 10, onConnection } = options;
  let lastId = options.lastEventId ?? "";
  let failures = 0;
  for (;;) {
    signal?.throwIfAborted();
    const answer = await connect(url, lastId, options);
    if (answer === "ended") return;
    let waitMs = firstWaitMs;
    if (answer instanceof StreamError) {
      failures += 1;
      if (failures >= maxAttempts) throw answer;
    } else {
      onConnection?.({ type: "open" });
      // Until something comes: a silent run is a stream of comments.
      failures += 1;
      const parser = new SseParser(lastId);
      for await (const text of textOf(answer)) {
        failures = 0;
        for (const message of parser.push(text)) {
          if (message.event !== "message" || isKnown(message.id, lastId)) continue;
          lastId = message.id;
          const event = JSON.parse(message.data) as ConversationEvent;
          yield { id: lastId, event };
          if (event.details?.some(({ type }) => type === "end") === true) return;
        }
      }
      signal?.throwIfAborted();
      if (failures >= maxAttempts)
        throw new StreamError("The stream ends before anything comes.", 200, "empty_stream");
      waitMs = parser.retryMs ?? firstWaitMs;
    }
    waitMs = Math.min(longestWaitMs, waitMs * 2 ** failures);
    onConnection?.({ type: "lost", retryInMs: waitMs });
    await pause(waitMs, signal);
  }
}

/** The body; "ended": nothing follows `lastId`; an error that may pass. @throws StreamError */
async function connect(
  url: string,
  lastId: string,
  { headers, signal, fetch: send = fetch }: ReadOptions,
): Promise<ReadableStream<Uint8Array> | "ended" | StreamError> {
  let response: Response;
  try {
    response = await send(url, {
      headers: {
        ...headers,
        accept: "text/event-stream",
        ...(lastId === "" ? {} : { "last-event-id": lastId }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    return new StreamError(`The server cannot be reached: ${String(error)}`, 0, "unreachable");
  }
  if (response.status === 204) return "ended";
  if (response.ok) return eventStreamOf(response);
  const error = await readError(response);
  if (response.status < 500 && response.status !== 429) throw error;
  return error;
}

/** @throws StreamError: a page of a proxy or of a development server, for example, which would come each time */
function eventStreamOf({ body, headers, status }: Response): ReadableStream<Uint8Array> {
  const type = headers.get("content-type");
  if (body !== null && type !== null && /^text\/event-stream\b/i.test(type)) return body;
  void body?.cancel().catch(() => {});
  const message = `The server answered with ${type ?? "nothing"} in place of an event stream: check the address.`;
  throw new StreamError(message, status, "no_event_stream");
}

async function readError(response: Response): Promise<StreamError> {
  const text = await response.text().catch(() => "");
  let error: { message?: string; code?: string } = {};
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error ?? {};
  } catch {
    // Not from this server: a proxy's page.
  }
  const message = error.message ?? `The server answered with status ${response.status}.`;
  return new StreamError(message, response.status, error.code ?? "unknown");
}

/** Until the connection ends, however it does. */
async function* textOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } catch {
    // Cut: what is missing comes over the next connection.
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Something between may have sent it again. */
function isKnown(id: string, lastId: string): boolean {
  return lastId !== "" && Number(id) <= Number(lastId);
}
