// A fake of an OpenAI-compatible server on a real socket, which answers as it is told to, well or badly.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is done with one request. */
export type FakeAnswer = (response: ServerResponse) => void | Promise<void>;

export interface FakeRequest {
  url: string;
  headers: IncomingMessage["headers"];
  body: Record<string, unknown>;
}

export interface FakeEndpoint {
  url: string;
  requests: FakeRequest[];
  /** Of the next requests, one each; the last one of all that follow. */
  answers: FakeAnswer[];
  /** Connections that are open. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

export async function startFakeEndpoint(...answers: FakeAnswer[]): Promise<FakeEndpoint> {
  const requests: FakeRequest[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += String(part);
    requests.push({ url: request.url ?? "", headers: request.headers, body: JSON.parse(text) });
    const answer = fake.answers.length > 1 ? fake.answers.shift() : fake.answers[0];
    await answer?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const fake: FakeEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    answers,
    connections: () =>
      new Promise((resolve) => server.getConnections((_error, count) => resolve(count))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return fake;
}

/** A choice's delta, and how it ends. */
export function chunk(delta: object, finishReason: string | null = null): object {
  return {
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
}

export const usageChunk = {
  choices: [],
  usage: {
    prompt_tokens: 30,
    completion_tokens: 9,
    prompt_tokens_details: { cached_tokens: 10 },
    completion_tokens_details: { reasoning_tokens: 4 },
  },
};

/** Streams these chunks and says that it is done. */
export function streamed(...chunks: object[]): FakeAnswer {
  return (response) => {
    open(response);
    for (const it of chunks) send(response, it);
    response.end("data: [DONE]\n\n");
  };
}

/** The same, without the last word. */
export function streamedWithoutDone(...chunks: object[]): FakeAnswer {
  return (response) => {
    open(response);
    for (const it of chunks) send(response, it);
    response.end();
  };
}

/** The connection breaks after these. */
export function broken(...chunks: object[]): FakeAnswer {
  return async (response) => {
    open(response);
    for (const it of chunks) send(response, it);
    await new Promise((resolve) => setTimeout(resolve, 20));
    response.destroy();
  };
}

/** Nothing comes after these. */
export function silent(...chunks: object[]): FakeAnswer {
  return (response) => {
    open(response);
    for (const it of chunks) send(response, it);
  };
}

export function status(
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): FakeAnswer {
  return (response) => {
    response.writeHead(code, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** One answer instead of a stream. */
export function whole(message: object, finishReason: string | null): FakeAnswer {
  return status(200, {
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: finishReason }],
    usage: { prompt_tokens: 5, completion_tokens: 3 },
  });
}

function open(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
}

function send(response: ServerResponse, data: object): void {
  response.write(`data: ${JSON.stringify(data)}\n\n`);
}
