/**
 * `fetch` for the SDK's HTTP transports. They wait for the answer to a POST as long as its stream takes
 * and keep whatever it brings; here an answer that is too large, or whose stream ends without it, becomes
 * an error of its call. A call that is cancelled ends its POST, which a server may leave open for ever.
 */

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { FermataError } from "../errors.ts";
import {
  BoundedLines,
  failedCall,
  idOfOversized,
  type Line,
  mebibytes,
  tooLarge,
} from "./mcp-lines.ts";

const maxErrorBytes = 4096;
/** For a message that has no answer, and for what a login needs. */
const shortMs = 30_000;
/** A message that nobody hears. */
const silence = { jsonrpc: "2.0", method: "notifications/message", params: {} };

export function boundedFetch(inner: FetchLike, limitBytes: number): FetchLike {
  /** By the ids of their requests. */
  const posts = new Map<number, AbortController>();
  return async (url, init = {}) => {
    const { id, cancelled } = readMessage(init.body);
    if (cancelled !== null) posts.get(cancelled)?.abort();
    const leaving = new AbortController();
    if (id !== null) posts.set(id, leaving);
    const isShort = id === null && !opensStream(init);
    const timer = isShort ? setTimeout(() => leaving.abort(), shortMs).unref() : undefined;
    const call: Call = {
      id,
      limitBytes,
      left: leaving.signal,
      end() {
        clearTimeout(timer);
        if (id !== null && posts.get(id) === leaving) posts.delete(id);
      },
    };
    const signals = init.signal ? [leaving.signal, init.signal] : [leaving.signal];
    let response: Response;
    try {
      response = await inner(url, { ...init, signal: AbortSignal.any(signals) });
    } catch (error) {
      call.end();
      // To the SDK, the server took the message and says nothing.
      if (leaving.signal.aborted) return new Response(null, { status: 202 });
      throw error;
    }
    if (response.body === null) {
      call.end();
      return response;
    }
    const body = boundedBody(response, response.body, call);
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

interface Call {
  /** Of the request that the POST carried. */
  id: number | null;
  limitBytes: number;
  /** Aborted: nobody waits for the answer any more. */
  left: AbortSignal;
  /** The POST is over. */
  end(): void;
}

function boundedBody(
  response: Response,
  body: ReadableStream<Uint8Array>,
  call: Call,
): ReadableStream<Uint8Array> {
  if (!response.ok) return wholeBody(body, { ...call, limitBytes: maxErrorBytes }, true);
  const type = response.headers.get("content-type") ?? "";
  return type.startsWith("text/event-stream")
    ? boundedEvents(body, call)
    : wholeBody(body, call, false);
}

/** A body that is not streamed. `cut`: its beginning is enough. */
function wholeBody(
  body: ReadableStream<Uint8Array>,
  { id, limitBytes, left, end }: Call,
  cut: boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  const kept: Uint8Array[] = [];
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const chunk = await reader.read().catch((error: unknown) => {
          end();
          if (left.aborted) return null;
          throw error;
        });
        if (chunk === null) {
          controller.enqueue(encode(silence));
          controller.close();
          return;
        }
        const { done, value } = chunk;
        if (!done) {
          bytes += value.length;
          kept.push(value);
        }
        if (!done && bytes <= limitBytes) continue;
        if (bytes > limitBytes) await reader.cancel();
        end();
        const whole = Buffer.concat(kept);
        if (bytes <= limitBytes || cut)
          controller.enqueue(new Uint8Array(whole.subarray(0, limitBytes)));
        else if (id !== null) controller.enqueue(encode(tooLarge(id, bytes, limitBytes)));
        else
          throw new FermataError(
            "internal_error",
            `its answer is larger than ${mebibytes(limitBytes)}`,
          );
        controller.close();
        return;
      }
    },
    cancel: async (reason) => {
      end();
      await reader.cancel(reason);
    },
  });
}

/** Server-sent events, line by line. */
function boundedEvents(
  body: ReadableStream<Uint8Array>,
  { id, limitBytes, left, end }: Call,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const lines = new BoundedLines(limitBytes);
  let isResumable = false;
  let isAnswered = id === null;
  const write = (controller: ReadableStreamDefaultController<Uint8Array>, line: Line): void => {
    if (line.kind === "line") {
      isResumable ||= /^id:./.test(line.text);
      isAnswered ||= answers(line.text, id);
      controller.enqueue(new TextEncoder().encode(`${line.text}\n`));
      return;
    }
    const failed = idOfOversized({ ...line, head: line.head.replace(/^data: ?/, "") }) ?? id;
    if (failed === null) return;
    isAnswered ||= failed === id;
    controller.enqueue(encode(tooLarge(failed, line.bytes, limitBytes), "data: "));
  };
  return new ReadableStream({
    async pull(controller) {
      // A pull that brings nothing is not repeated.
      for (let hasWritten = false; !hasWritten;) {
        let chunk: Awaited<ReturnType<typeof reader.read>>;
        try {
          chunk = await reader.read();
        } catch (error) {
          if (left.aborted) break;
          end();
          // Who can resume the stream does; who cannot would wait for ever.
          if (isResumable || isAnswered) throw error;
          break;
        }
        if (chunk.done) break;
        for (const line of lines.push(Buffer.from(chunk.value))) {
          write(controller, line);
          hasWritten = true;
        }
        if (hasWritten) return;
      }
      end();
      const last = left.aborted ? goodbye(id, isResumable) : lost(id, isResumable || isAnswered);
      if (last !== null) {
        controller.enqueue(encode(last, "\n\ndata: "));
        controller.enqueue(new TextEncoder().encode("\n\n"));
      }
      controller.close();
    },
    cancel: async (reason) => {
      end();
      await reader.cancel(reason);
    },
  });
}

function lost(id: number | null, isNoLoss: boolean): object | null {
  return id === null || isNoLoss
    ? null
    : failedCall(id, "the server closed the connection before it answered");
}

/** For a stream that is left: without an answer the SDK would resume it. */
function goodbye(id: number | null, isResumable: boolean): object | null {
  return isResumable ? { jsonrpc: "2.0", id, result: {} } : null;
}

/** Whether an event's line holds the answer to the request. */
function answers(line: string, id: number | null): boolean {
  if (id === null || !line.startsWith("data:")) return false;
  const body = line.slice(5);
  const found = idOfOversized({ head: body.slice(0, 512), tail: body.slice(-512) });
  return found === id || (found === null && body.includes(`"id":${id}`));
}

function encode(message: object, before = ""): Uint8Array {
  return new TextEncoder().encode(`${before}${JSON.stringify(message)}\n`);
}

function opensStream({ method = "GET", headers }: NonNullable<Parameters<FetchLike>[1]>): boolean {
  const accept = new Headers(headers).get("accept") ?? "";
  return method === "GET" && accept.includes("text/event-stream");
}

/** The id of a request, and the request that a notification cancels. */
function readMessage(body: unknown): { id: number | null; cancelled: number | null } {
  const neither = { id: null, cancelled: null };
  if (typeof body !== "string") return neither;
  try {
    const { id, method, params } = JSON.parse(body) as Record<string, unknown>;
    if (typeof id === "number" && typeof method === "string") return { id, cancelled: null };
    if (method !== "notifications/cancelled") return neither;
    const { requestId } = params as { requestId?: unknown };
    return { id: null, cancelled: typeof requestId === "number" ? requestId : null };
  } catch {
    return neither;
  }
}
