/**
 * `fetch` without limits of time: Node's own gives up an answer that is silent for five minutes, before its head or
 * within its body. The caller's signal is the limit here. It follows no redirect, and a connection that fails, also
 * within a body, is a TypeError, as with `fetch`.
 */

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps, type RequestOptions } from "node:https";
import { Readable } from "node:stream";

interface PatientInit {
  method?: string;
  headers?: ConstructorParameters<typeof Headers>[0];
  /** Text, or what is text by its `toString`, as URLSearchParams are. Its type is for the headers to say. */
  body?: unknown;
  signal?: AbortSignal | null;
}

/** Less than the five seconds after which many servers close a connection that is not used. */
const idleMs = 4000;
const agents = {
  "http:": new HttpAgent({ keepAlive: true, timeout: idleMs }),
  "https:": new HttpsAgent({ keepAlive: true, timeout: idleMs }),
};
/** Where the caller says nothing else. What comes is not unpacked. */
const usualHeaders = { "user-agent": "fermata", accept: "*/*", "accept-encoding": "identity" };
/** Between probes for a peer that is gone without a word. */
const probeMs = 60_000;

export async function patientFetch(
  target: string | URL,
  init: PatientInit = {},
): Promise<Response> {
  const { protocol } = new URL(target);
  try {
    return await requestOnce(target, init, {
      agent: protocol === "https:" ? agents["https:"] : agents["http:"],
    });
  } catch (error) {
    init.signal?.throwIfAborted();
    throw new TypeError("fetch failed", { cause: error });
  }
}

/** @throws what the socket or the lookup failed with */
export async function requestOnce(
  target: string | URL,
  { method = "GET", headers, body, signal }: PatientInit,
  connection: Pick<RequestOptions, "agent" | "lookup">,
): Promise<Response> {
  const url = new URL(target);
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = send(url, {
      method,
      headers: { ...usualHeaders, ...Object.fromEntries(new Headers(headers).entries()) },
      ...connection,
      ...(signal ? { signal } : {}),
    });
    request.setSocketKeepAlive(true, probeMs);
    request.once("response", resolve);
    request.on("error", reject);
    request.end(body === undefined || body === null ? undefined : String(body));
  });
  return toResponse(message, signal);
}

function toResponse(message: IncomingMessage, signal: PatientInit["signal"]): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const status = message.statusCode ?? 500;
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  if (!hasBody) message.resume();
  const body = hasBody ? bodyOf(message, signal) : null;
  return new Response(body, { status, statusText: message.statusMessage ?? "", headers });
}

function bodyOf(
  message: IncomingMessage,
  signal: PatientInit["signal"],
): ReadableStream<Uint8Array> {
  const reader = (Readable.toWeb(message) as ReadableStream<Uint8Array>).getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (cause) {
          signal?.throwIfAborted();
          throw new TypeError("terminated", { cause });
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // The message keeps what is not read yet.
    { highWaterMark: 0 },
  );
}
