/** What tests of faults do with `fermata serve`. */

import { expect } from "vitest";
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

export function post(
  server: ServedCommand,
  path: string,
  body: object,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

/** A stream whose first tokens have come, and which does not end by itself for minutes. */
export async function endlessStream(
  server: ServedCommand,
): Promise<{ text(): string; ended: Promise<void>; leave(): void }> {
  const client = new AbortController();
  const body = {
    prompt: "Once",
    max_tokens: 8000,
    ignore_eos: true,
    stream: true,
    temperature: 2,
    top_k: 0,
    min_p: 0,
  };
  const response = await post(server, "/v1/completions", body, client.signal);
  let text = "";
  const pieces = response.body!.pipeThrough(new TextDecoderStream());
  const ended = (async () => {
    for await (const piece of pieces) text += piece;
  })();
  ended.catch(() => {});
  await eventually(() => expect(text.split("data: ").length).toBeGreaterThan(3));
  return { text: () => text, ended, leave: () => client.abort() };
}
