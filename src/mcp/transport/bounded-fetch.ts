/**
 * `fetch` for the SDK's HTTP transports. They wait for the answer to a POST as long as its stream takes
 * and keep whatever it brings; here an answer that is too large, or whose stream ends without it, becomes
 * an error of its call. A call that is cancelled ends its POST, which a server may leave open for ever.
 */

import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { FermataError } from "../../errors.ts";
import { exactText } from "../../json.ts";
import {
  BoundedLines,
  failedCall,
  idOfOversized,
  type Line,
  mebibytes,
  tooLarge,
} from "./bounded-lines.ts";

const maxErrorBytes = 4096;
/** For a message that has no answer, and for what a login needs. */
const shortMs = 30_000;
/** A message that nobody hears. */
const silence = { jsonrpc: "2.0", method: "notifications/message", params: {} };

export function boundedFetch(inner: FetchLike, limitBytes: number): FetchLike {
  /** By the ids of their requests. */
  const posts = new Map<number, AbortController>();
  return async (url, init = {}) => {
    const { id, cancelled, isMessage } = readMessage(init.body);
    if (cancelled !== null) posts.get(cancelled)?.abort();
    const leaving = new AbortController();
    if (id !== null) posts.set(id, leaving);
    const isShort = id === null && !opensStream(init);
    const leave = (): void => leaving.abort(late(url));
    const timer = isShort ? setTimeout(leave, shortMs).unref() : undefined;
    const call: Call = {
      id,
      isMessage,
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
      const { body } = init;
      const exact = typeof body === "string" ? { body: exactText(body) } : {};
      response = await inner(url, { ...init, ...exact, signal: AbortSignal.any(signals) });
    } catch (error) {
      call.end();
      if (!leaving.signal.aborted) throw error;
      if (!isMessage) throw leaving.signal.reason;
      // To the SDK, the server took the message and says nothing.
      return new Response(null, { status: 202 });
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
  /** It carried JSON-RPC: of anything else whose time is over, the reason of `left` is thrown. */
  isMessage: boolean;
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
  { id, isMessage, limitBytes, left, end }: Call,
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
          if (!left.aborted) throw error;
          if (!isMessage) throw left.reason;
          return null;
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
  { id, isMessage, limitBytes, left, end }: Call,
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
          if (left.aborted && isMessage) break;
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

function late(url: string | URL): FermataError {
  const { host } = new URL(url);
  const problem = `${host} did not answer within ${shortMs / 1000} seconds`;
  return new FermataError("mcp_server_unreachable", problem);
}

function opensStream({ method = "GET", headers }: NonNullable<Parameters<FetchLike>[1]>): boolean {
  const accept = new Headers(headers).get("accept") ?? "";
  return method === "GET" && accept.includes("text/event-stream");
}

/** Of a JSON-RPC message: the id of a request, and the request that a notification cancels. */
function readMessage(body: unknown): Pick<Call, "id" | "isMessage"> & { cancelled: number | null } {
  const none = { id: null, cancelled: null, isMessage: false };
  if (typeof body !== "string") return none;
  try {
    const { jsonrpc, id, method, params } = JSON.parse(body) as Record<string, unknown>;
    if (jsonrpc !== "2.0") return none;
    const message = { ...none, isMessage: true };
    if (typeof id === "number" && typeof method === "string") return { ...message, id };
    if (method !== "notifications/cancelled") return message;
    const { requestId } = params as { requestId?: unknown };
    return { ...message, cancelled: typeof requestId === "number" ? requestId : null };
  } catch {
    return none;
  }
}
