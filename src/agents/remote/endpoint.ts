/** Requests to an OpenAI-compatible endpoint, streamed: waits, tries again, gives up, never hangs. */

import { type JsonObject, isJsonObject, parseJson } from "../../json.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { FermataError } from "../../errors.ts";
import type { EndpointConfig } from "../agents-config.ts";
import { SseParser } from "../../client/sse-parser.ts";
import { patientFetch } from "../../patient-fetch.ts";

/** `done`: it said so. `ended`: the connection just closed. `whole`: one answer came instead of a stream. */
export type StreamEnd = "done" | "ended" | "whole";

const maxTries = 3;
const firstPauseMs = 500;
const longestPauseMs = 5000;
/** Of a server that may answer a moment later. */
const mayPass = (status: number): boolean => status === 408 || status === 429 || status >= 500;
/** Of one answer. */
const maxBytes = 32 * 1024 * 1024;
const maxErrorLength = 300;

/** What OpenAI's newer models call `max_tokens`, and refuse it for. */
const newLimit = "max_completion_tokens";

export class Endpoint {
  readonly #config: EndpointConfig;
  /** It answered a request with `newLimit`, after it had refused the old name. */
  #wantsNewLimit = false;

  constructor(config: EndpointConfig) {
    this.#config = config;
  }

  /**
   * The chunks of a streamed chat completion.
   * @throws FermataError endpoint_failed | the reason of an aborted signal
   */
  async *stream(
    body: JsonObject,
    signal: AbortSignal,
  ): AsyncGenerator<JsonObject, StreamEnd, void> {
    const watch = new Silence(this.#config.timeoutMs, signal);
    try {
      const response = await this.#open(body, watch);
      if (response.headers.get("content-type")?.includes("text/event-stream") === true)
        return yield* this.#events(response, watch);
      yield this.#parse(await this.#text(response, watch));
      return "whole";
    } catch (error) {
      signal.throwIfAborted();
      if (watch.signal.aborted)
        throw this.#failure(`said nothing for ${this.#config.timeoutMs / 1000} seconds`);
      throw error instanceof FermataError ? error : this.#failure(`broke off: ${reasonOf(error)}`);
    } finally {
      watch.end();
    }
  }

  /** Before the first byte of an answer a request may be sent again; afterwards never. */
  async #open(body: JsonObject, watch: Silence): Promise<Response> {
    const hasLimit = body["max_tokens"] !== undefined;
    let wantsNewLimit = this.#wantsNewLimit;
    for (let tries = 1; ; tries++) {
      watch.heard();
      const isLast = tries >= maxTries;
      let pauseMs = firstPauseMs * 2 ** (tries - 1);
      try {
        // The key is for this host: a redirect is an answer that failed.
        const response = await patientFetch(`${this.#config.url}/chat/completions`, {
          method: "POST",
          headers: this.#headers(),
          body: JSON.stringify(wantsNewLimit ? withNewLimit(body) : body),
          signal: watch.signal,
        });
        watch.heard();
        if (response.ok) {
          if (hasLimit) this.#wantsNewLimit = wantsNewLimit;
          return response;
        }
        const message = messageOf(parseJson(await this.#text(response, watch)));
        if (response.status === 400 && hasLimit && !wantsNewLimit && message.includes(newLimit)) {
          wantsNewLimit = true;
          continue;
        }
        if (isLast || !mayPass(response.status))
          throw this.#failure(`answered ${response.status}${message}`);
        pauseMs = Math.max(pauseMs, retryAfterMs(response));
      } catch (error) {
        if (isLast || watch.signal.aborted || error instanceof FermataError) throw error;
      }
      await sleep(Math.min(pauseMs, longestPauseMs), undefined, { signal: watch.signal });
    }
  }

  async *#events(
    response: Response,
    watch: Silence,
  ): AsyncGenerator<JsonObject, "done" | "ended", void> {
    const decoder = new TextDecoder();
    const parser = new SseParser();
    for await (const part of this.#parts(response, watch)) {
      for (const { data } of parser.push(decoder.decode(part, { stream: true }))) {
        if (data === "[DONE]") return "done";
        yield this.#parse(data);
      }
    }
    return "ended";
  }

  async #text(response: Response, watch: Silence): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const part of this.#parts(response, watch))
      text += decoder.decode(part, { stream: true });
    return text + decoder.decode();
  }

  async *#parts(response: Response, watch: Silence): AsyncGenerator<Uint8Array, void, void> {
    let bytes = 0;
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      watch.heard();
      bytes += part.byteLength;
      if (bytes > maxBytes) throw this.#failure(`sent more than ${maxBytes} bytes`);
      yield part;
    }
  }

  /** Some servers tell a failure in the middle of a stream, or with status 200. */
  #parse(text: string): JsonObject {
    const value = parseJson(text);
    if (value === undefined) throw this.#failure("sent something that is not JSON");
    if (!isJsonObject(value)) throw this.#failure("sent something that is no chat completion");
    const { error } = value;
    if (error !== undefined && error !== null)
      throw this.#failure(`reports an error${messageOf(value)}`);
    return value;
  }

  #headers(): Record<string, string> {
    const { apiKey } = this.#config;
    return {
      "content-type": "application/json",
      accept: "text/event-stream, application/json",
      ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }

  #failure(problem: string): FermataError {
    const { host } = new URL(this.#config.url);
    return new FermataError("endpoint_failed", `The endpoint ${host} ${problem}.`);
  }
}

/** Aborts when nothing was heard for a while, and when the outer signal does. */
class Silence {
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(milliseconds: number, outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.#abort.signal]);
    this.#timer = setTimeout(() => this.#abort.abort(), milliseconds);
  }

  heard(): void {
    this.#timer.refresh();
  }

  /** Closes the connection, if it is open. */
  end(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }
}

function withNewLimit({ max_tokens: limit, ...body }: JsonObject): JsonObject {
  return { ...body, [newLimit]: limit };
}

/** OpenAI's shape, and the plainer ones of others. */
function messageOf(body: unknown): string {
  const error = isJsonObject(body) ? body["error"] : undefined;
  const message = typeof error === "string" ? error : (error as { message?: unknown })?.message;
  if (typeof message !== "string" || message === "") return "";
  return `: ${message.slice(0, maxErrorLength).replace(/[\s.]+$/, "")}`;
}

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? "0");
  return Number.isFinite(seconds) ? seconds * 1000 : 0;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? cause.message || error.message : error.message;
}
