/** What tests of faults do with `fermata serve`. */

import { expect } from "vitest";
import { openEndlessStream } from "../../../scripts/bench/stalls/endless-stream.mjs";
import type { ServedCommand } from "../../support/command-line.ts";
import { eventually } from "../../support/eventually.ts";

/** The process id of the worker that is the `count`th, once it serves. */
export function workerOf(server: ServedCommand, count: number): Promise<number> {
  return eventually(() => {
    const pids = [...server.log().matchAll(/"pid":(\d+)[^\n]*worker ready/g)].map(([, pid]) => pid);
    expect(pids.length).toBeGreaterThanOrEqual(count);
    return Number(pids[count - 1]);
  });
}

export function post(server: ServedCommand, path: string, body: object): Promise<Response> {
  return fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** A stream whose first tokens have come, and which does not end by itself for minutes. */
export async function endlessStream(
  server: ServedCommand,
): Promise<{ text(): string; ended: Promise<void>; leave(): void }> {
  let text = "";
  const decoder = new TextDecoder();
  const { ended, leave } = await openEndlessStream(server.url, (piece) => {
    text += decoder.decode(piece, { stream: true });
  });
  await eventually(() => expect(text.split("data: ").length).toBeGreaterThan(3));
  return { text: () => text, ended, leave };
}
