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
): Promise<{ text(): string; ended: Promise<void> }> {
  const response = await post(server, "/v1/completions", {
    prompt: "Once",
    max_tokens: 8000,
    ignore_eos: true,
    stream: true,
    temperature: 2,
    top_k: 0,
    min_p: 0,
  });
  let text = "";
  const body = response.body!.pipeThrough(new TextDecoderStream());
  const ended = (async () => {
    for await (const piece of body) text += piece;
  })();
  ended.catch(() => {});
  await eventually(() => expect(text.split("data: ").length).toBeGreaterThan(3));
  return { text: () => text, ended };
}
