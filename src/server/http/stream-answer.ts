/** What an answer waits for before it begins, and how it is written while it is generated, whatever its wire format. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { FermataError } from "../../errors.ts";
import { logError, toFermataError } from "./error-replies.ts";
import type { Framing } from "./connection-reports.ts";
import { SseStream, type SseMessage, type SseOptions } from "./sse.ts";
import type { ServerConfig } from "../services.ts";
import { isJsonObject } from "../../json.ts";
import type { ToolProvider } from "../../tools/types.ts";

/** MCP servers that still start, schemas and grammars that are compiled. */
export class Preparation {
  readonly #begun: Promise<void>[] = [];
  #running = 0;

  /** See `ChatRequest.onPrepare`. */
  readonly add = (work: Promise<unknown>): void => {
    this.#running += 1;
    const end = (): void => void (this.#running -= 1);
    this.#begun.push(work.then(end, end));
  };

  /**
   * Waits for `first`, for `milliseconds` and until the preparation has ended, so a refusal gets its HTTP status.
   * @throws the error of `first`, if it fails in that time
   */
  async settle(first: Promise<unknown>, milliseconds: number): Promise<void> {
    await settledWithin(first, milliseconds);
    if (this.#running === 0) return;
    await Promise.race([first, Promise.all(this.#begun)]);
    await settledWithin(first, milliseconds);
  }
}

/** Waits for `promise`, at most `milliseconds`. @throws its error, if it fails in that time */
async function settledWithin(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

/** One stream's messages, in order: `opening`, those of each event, then `closing` or `failure`. What is left out tells nothing. */
export interface AnswerStream<Event> {
  /** See `SseOptions`. */
  readonly isResumable?: boolean;
  readonly framing?: Framing;
  opening?(): SseMessage[];
  /** See `SseOptions`. */
  waiting?(): SseMessage | undefined;
  messages(event: Event): SseMessage[];
  closing?(): SseMessage[];
  failure(error: FermataError): SseMessage[];
}

interface StreamTarget {
  request: FastifyRequest;
  reply: FastifyReply;
  config: ServerConfig;
  preparation?: Preparation;
}

/**
 * A failure within this time, or during the preparation, still gets its HTTP status. Then the stream opens, so a client
 * in the queue gets a first sign.
 */
export const openStreamAfterMs = 500;
const defaultKeepAliveMs = 15_000;
const defaultStalledMs = 5 * 60_000;
const defaultCrowdedStalledMs = 20_000;

export function sseTimes({
  keepAliveMs = defaultKeepAliveMs,
  stalledMs = defaultStalledMs,
  crowdedStalledMs = defaultCrowdedStalledMs,
}: ServerConfig): Pick<SseOptions, "keepAliveMs" | "stalledMs" | "crowdedStalledMs"> {
  return { keepAliveMs, stalledMs, crowdedStalledMs: Math.min(crowdedStalledMs, stalledMs) };
}

/** Aborted when the reader of the reply has gone. For what only reads: work that a reader leaves may go on. */
export function readerGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

/** @throws the failure of `events`, if it comes before the stream opens */
export async function streamAnswer<Event>(
  events: AsyncGenerator<Event, void, void>,
  stream: AnswerStream<Event>,
  { request, reply, config, preparation = new Preparation() }: StreamTarget,
): Promise<void> {
  let pending = events.next();
  await preparation.settle(pending, openStreamAfterMs);

  const isResumable = stream.isResumable ?? false;
  const { framing } = stream;
  const waiting = (): SseMessage | undefined => stream.waiting?.();
  const sse = new SseStream(reply, { ...sseTimes(config), isResumable, framing, waiting });
  const send = async (messages: SseMessage[] = []): Promise<void> => {
    for (const message of messages) await sse.send(message);
  };
  try {
    await send(stream.opening?.());
    for (let next = await pending; next.done !== true; next = await pending) {
      await send(stream.messages(next.value));
      pending = events.next();
    }
    await send(stream.closing?.());
  } catch (error) {
    const failure = toFermataError(error);
    logError(failure, request);
    await send(stream.failure(failure));
  } finally {
    sse.end();
  }
}

export const missingServersHeader = "x-fermata-missing-servers";

/**
 * A route's `preHandler`; it runs before the tools are looked up.
 * @param emptyIsAbsent a request with an empty list of tools is one without a list
 */
export function waitForServers(
  provider: Pick<ToolProvider, "missing"> | null,
  { emptyIsAbsent = false } = {},
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { body } = request;
    const isEmpty =
      isJsonObject(body) && Array.isArray(body["tools"]) && body["tools"].length === 0;
    const asked = emptyIsAbsent && isEmpty ? { ...body, tools: null } : body;
    const servers = await missingServers(provider, asked, request);
    if (servers.length === 0) return;
    reply.header(missingServersHeader, servers.map((name) => encodeURIComponent(name)).join(","));
  };
}

/** Waits for the servers whose tools the request may use, and logs those that are not ready. */
export async function missingServers(
  provider: Pick<ToolProvider, "missing"> | null,
  body: unknown,
  { log }: Pick<FastifyRequest, "log">,
): Promise<readonly string[]> {
  if (provider?.missing === undefined || !mayCallServers(body)) return [];
  const servers = await provider.missing();
  if (servers.length > 0)
    log.warn({ servers }, "MCP servers are not ready: the answer goes without their tools");
  return servers;
}

/** False: the client sends its own tools, or wants none. */
function mayCallServers(body: unknown): boolean {
  if (!isJsonObject(body)) return false;
  const { tools, tool_choice: choice } = body;
  if (choice === "none") return false;
  if (!Array.isArray(tools)) return true;
  // Conversations name tools of servers; tools of responses are objects.
  return tools.some(
    (tool: unknown) => typeof tool === "string" || (isJsonObject(tool) && tool["type"] === "mcp"),
  );
}
