/**
 * `fetch` for the SDK's HTTP transports. They wait for the answer to a POST as long as its stream takes
 * and keep whatever it brings; here an answer that is too large, or whose stream ends without it, becomes
 * an error of its call.
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

export function boundedFetch(inner: FetchLike, limitBytes: number): FetchLike {
  return async (url, init) => {
    const response = await inner(url, init);
    if (response.body === null) return response;
    const call = { id: requestId(init?.body), limitBytes };
    const body = boundedBody(response, response.body, call);
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

interface Call {
  /** Of the request that the POST carried. */
  id: number | null;
  limitBytes: number;
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
  { id, limitBytes }: Call,
  cut: boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  const kept: Uint8Array[] = [];
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read();
        if (!done) {
          bytes += value.length;
          kept.push(value);
        }
        if (!done && bytes <= limitBytes) continue;
        if (bytes > limitBytes) await reader.cancel();
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
    cancel: async (reason) => await reader.cancel(reason),
  });
}

/** Server-sent events, line by line. */
function boundedEvents(
  body: ReadableStream<Uint8Array>,
  { id, limitBytes }: Call,
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
      if (!isResumable && !isAnswered && id !== null) {
        const lost = failedCall(id, "the server closed the connection before it answered");
        controller.enqueue(encode(lost, "\n\ndata: "));
        controller.enqueue(new TextEncoder().encode("\n\n"));
      }
      controller.close();
    },
    cancel: async (reason) => await reader.cancel(reason),
  });
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

function requestId(body: unknown): number | null {
  if (typeof body !== "string") return null;
  try {
    const { id, method } = JSON.parse(body) as { id?: unknown; method?: unknown };
    return typeof id === "number" && typeof method === "string" ? id : null;
  } catch {
    return null;
  }
}
