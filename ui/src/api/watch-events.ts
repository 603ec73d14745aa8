/** Reads an endless stream of server-sent events. Only the newest event matters, so nothing is read again after a reconnect. */

import { SseParser } from "../../../src/client/sse-parser.ts";
import { ApiError, send } from "./request.ts";

const firstDelayMs = 500;
const longestDelayMs = 5000;

interface Watcher {
  signal: AbortSignal;
  onEvent(data: string): void;
  /** False when the connection is lost, true when it is back. */
  onConnection(connected: boolean): void;
}

/** Runs until `signal`. @throws ApiError if a retry cannot help */
export async function watchEvents(path: string, watcher: Watcher): Promise<void> {
  const { signal } = watcher;
  let delayMs = firstDelayMs;
  while (!signal.aborted) {
    try {
      const response = await send(path, { signal });
      watcher.onConnection(true);
      delayMs = firstDelayMs;
      await readAll(response, watcher);
      watcher.onConnection(false);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error;
      watcher.onConnection(false);
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    delayMs = Math.min(delayMs * 2, longestDelayMs);
  }
}

async function readAll({ body }: Response, { onEvent }: Watcher): Promise<void> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { data } of parser.push(decoder.decode(value, { stream: true }))) onEvent(data);
  }
}
