/** Writes an answer while it is generated, whatever its wire format. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { FermataError } from "../../errors.ts";
import { logError, toFermataError } from "./error-replies.ts";
import type { Framing } from "./connection-reports.ts";
import { SseStream, type SseMessage, type SseOptions } from "./sse.ts";
import type { ServerConfig } from "../services.ts";
import { Preparation } from "./preparation.ts";

/** One stream's messages, in order: `opening`, those of each event, then `closing` or `failure`. */
export interface AnswerStream<Event> {
  /** See `SseOptions`. */
  readonly isResumable?: boolean;
  readonly framing?: Framing;
  opening(): SseMessage[];
  messages(event: Event): SseMessage[];
  closing(): SseMessage[];
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
  const sse = new SseStream(reply, { ...sseTimes(config), isResumable, framing });
  const send = async (messages: SseMessage[]): Promise<void> => {
    for (const message of messages) await sse.send(message);
  };
  try {
    await send(stream.opening());
    for (let next = await pending; next.done !== true; next = await pending) {
      await send(stream.messages(next.value));
      pending = events.next();
    }
    await send(stream.closing());
  } catch (error) {
    const failure = toFermataError(error);
    logError(failure, request);
    await send(stream.failure(failure));
  } finally {
    sse.end();
  }
}
