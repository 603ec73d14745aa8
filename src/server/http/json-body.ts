/**
 * Bodies: JSON, also where curl calls it a form and `fetch` a text. A body that would hold up every other stream while it is
 * parsed, or is nested deeper than any recursion over it would bear, is refused before. Parsing on another thread would
 * not help: to copy the values between threads takes three times as long as to parse them.
 */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { createHash } from "node:crypto";
import { type Readable, Transform, finished } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { FermataError } from "../../errors.ts";
import { markNumber, maxDepth, unmark } from "../../json.ts";
import type { IncomingMessage } from "node:http";

/** Of one body, in bytes, where nothing else is said: four megabytes of text are a million tokens. */
export const defaultBodyBytes = 4 * 2 ** 20;
/**
 * A body may have a list item for each so many bytes of its limit: text takes next to nothing to parse, 200,000 items 20 to 100 ms.
 * A key counts as two: those of a large object take longest.
 */
const bytesPerValue = 20;
/** What is read of a body before other streams have their turn. */
const sliceBytes = 256 * 2 ** 10;
const jsonType = /^[\w.+-]+\/(?:[\w.+-]+\+)?json$/;
/** What programs call a body whose type they were not told. A browser asks before it sends any other. */
const untoldTypes = ["", "application/x-www-form-urlencoded", "text/plain"];

declare module "fastify" {
  interface FastifyInstance {
    /** Parses within the limits, in turns. Sets `request.bodyHash`. @throws FermataError invalid_json | body_too_large */
    readJson(request: FastifyRequest, bytes: Buffer): Promise<unknown>;
  }
}

/** An empty body is none, since some clients send a type with every request. */
export function installJsonBody(app: FastifyInstance): void {
  app.decorate("readJson", async (request: FastifyRequest, bytes: Buffer): Promise<unknown> => {
    const hash = app.connectionReports === null ? null : createHash("sha256");
    const { bodyLimit = defaultBodyBytes } = request.routeOptions;
    const text = new JsonText(bytes, bodyLimit / bytesPerValue);
    for (let start = 0; start < bytes.length; start += sliceBytes) {
      hash?.update(bytes.subarray(start, start + sliceBytes));
      text.checkTo(Math.min(bytes.length, start + sliceBytes));
      if (bytes.length > sliceBytes) await setImmediate();
    }
    request.bodyHash = hash?.digest("base64url") ?? null;
    const value = parseBody(text.marked.toString("utf8"));
    if (text.marked !== bytes) unmark(value, checkNumber);
    if (bytes.length > sliceBytes) await setImmediate();
    return value;
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    "*",
    { parseAs: "buffer" },
    async (request: FastifyRequest, body: Buffer) => {
      if (body.length === 0) return undefined;
      if (!hasJsonType(request) && !untoldTypes.includes(mediaType(request)))
        throw new FermataError(
          "unsupported_media_type",
          'The body\'s type is not supported. Send JSON with the header "content-type: application/json".',
          { param: "content-type" },
        );
      const { "content-encoding": encoding = "identity" } = request.headers;
      if (encoding.toLowerCase() !== "identity")
        throw new FermataError(
          "unsupported_media_type",
          "The body is compressed, and this server reads plain bodies only. Send it without the header content-encoding.",
          { param: "content-encoding" },
        );
      return await app.readJson(request, body);
    },
  );
}

/**
 * Names such as `__proto__` are data, of schemas and arguments: each becomes a property of its own, as JSON.parse makes them.
 * @throws FermataError invalid_json
 */
function parseBody(text: string): unknown {
  try {
    return JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text) as unknown;
  } catch (cause) {
    const message = "The body is not valid JSON. Send one JSON object.";
    throw new FermataError("invalid_json", message, { param: "body", cause });
  }
}

/** JSON has numbers that JavaScript has not: they would become null in what is made of the body. */
function checkNumber(number: number, path: readonly string[]): void {
  if (Number.isFinite(number)) return;
  const place = path
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key.slice(0, 64)}`))
    .join("");
  const param = place.replace(/^\./, "");
  const message = `"${param}" is a number of more than 1.8e308. Send a smaller one, or a string.`;
  throw new FermataError("invalid_value", message, { param });
}

/** Of all bodies that are on their way, in bytes. */
const defaultUnfinishedBytes = 128 * 2 ** 20;
/** Shorter ones that say so are not counted: requests may not be many enough to matter. */
const uncountedBytes = 64 * 2 ** 10;

/** Many clients that send slowly, or never end, must not fill the memory. @param limit in bytes */
export function installBodyBudget(app: FastifyInstance, limit = defaultUnfinishedBytes): void {
  let unfinished = 0;
  app.addHook("preParsing", (request, _reply, payload, done) => {
    const told = Number(request.headers["content-length"] ?? Infinity);
    const { bodyLimit = defaultBodyBytes } = request.routeOptions;
    if (told > bodyLimit && told < Infinity) return done(tooLarge(bodyLimit));
    if (told <= uncountedBytes) return done(null, payload);
    let counted = 0;
    const meter = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        counted += chunk.length;
        unfinished += chunk.length;
        if (counted > bodyLimit) next(tooLarge(bodyLimit));
        else next(unfinished > limit ? tooManyBytes(limit) : null, chunk);
      },
    });
    meter.once("close", () => (unfinished -= counted));
    done(null, follow(payload, meter));
  });
}

/** The client's end ends the meter, but not the other way round: it is still to be answered. */
function follow(payload: Readable, meter: Transform): Transform {
  payload.once("error", (error) => meter.destroy(error));
  payload.once("close", () => {
    if (!payload.readableEnded) meter.destroy();
  });
  return payload.pipe(meter);
}

function tooLarge(limit: number): FermataError {
  const message = `The body is larger than ${limit / 2 ** 20} MiB. Send less, or start the server with a higher --max-body.`;
  return new FermataError("body_too_large", message, { param: "body" });
}

function tooManyBytes(limit: number): FermataError {
  const message = `More than ${limit / 2 ** 20} MiB of requests are being received. Send this one again in a moment.`;
  return new FermataError("queue_full", message, { param: "body" });
}

export function hasJsonType(request: FastifyRequest): boolean {
  return jsonType.test(mediaType(request));
}

/** Empty if none is told. */
function mediaType({ headers }: FastifyRequest): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

const byte = { quote: 0x22, comma: 0x2c, colon: 0x3a, backslash: 0x5c, minus: 0x2d };
/** Shorter ones without an exponent are the same in JavaScript, or as near as `1.0` is to `1`. */
const longNumber = 16;
const opening = [0x5b, 0x7b];
const closing = [0x5d, 0x7d];

/**
 * Counts levels and values, as far as it has come, and marks the numbers that JavaScript would change. What it makes of
 * text that is no JSON does not matter.
 */
class JsonText {
  readonly #bytes: Buffer;
  readonly #maxValues: number;
  #at = 0;
  #isInString = false;
  #depth = 0;
  #values = 0;
  /** Since the last of `#pieces`. */
  #unmarkedFrom = 0;
  #pieces: Buffer[] = [];

  constructor(bytes: Buffer, maxValues: number) {
    this.#bytes = bytes;
    this.#maxValues = Math.floor(maxValues);
  }

  /** @throws FermataError invalid_json: too deep | body_too_large: too many values */
  checkTo(end: number): void {
    while (this.#at < end) {
      if (this.#isInString) this.#leaveString();
      else this.#take(this.#bytes[this.#at++]!);
    }
    if (this.#values <= this.#maxValues) return;
    const message = `The body has more than ${this.#maxValues} list items, where a key counts as two. Send fewer, or several requests.`;
    throw new FermataError("body_too_large", message, { param: "body" });
  }

  /** Once it has come to the end. @returns the bytes themselves where no number had to be marked */
  get marked(): Buffer {
    if (this.#pieces.length === 0) return this.#bytes;
    return Buffer.concat([...this.#pieces, this.#bytes.subarray(this.#unmarkedFrom)]);
  }

  #take(character: number): void {
    if (isDigit(character)) this.#leaveNumber();
    else if (character === byte.quote) this.#isInString = true;
    else if (character === byte.comma || character === byte.colon) this.#values += 1;
    else if (opening.includes(character)) {
      this.#values += 1;
      this.#depth += 1;
      if (this.#depth > maxDepth) throw tooDeep();
    } else if (closing.includes(character)) this.#depth -= 1;
  }

  /** From behind its first digit. */
  #leaveNumber(): void {
    let start = this.#at - 1;
    if (this.#bytes[start - 1] === byte.minus) start -= 1;
    let hasExponent = false;
    for (; isInNumber(this.#bytes[this.#at]); this.#at++)
      hasExponent ||= isExponent(this.#bytes[this.#at]);
    const length = this.#at - start;
    if (this.#depth === 0 || (length < longNumber && !hasExponent)) return;
    const marked = markNumber(this.#bytes.toString("latin1", start, this.#at));
    if (marked === null) return;
    this.#pieces.push(this.#bytes.subarray(this.#unmarkedFrom, start), Buffer.from(marked));
    this.#unmarkedFrom = this.#at;
  }

  /** As far as the next quote, which may be one of its characters. */
  #leaveString(): void {
    const quote = this.#bytes.indexOf(byte.quote, this.#at);
    if (quote < 0) {
      this.#at = this.#bytes.length;
      return;
    }
    let slashes = 0;
    while (this.#bytes[quote - 1 - slashes] === byte.backslash) slashes += 1;
    this.#isInString = slashes % 2 === 1;
    this.#at = quote + 1;
  }
}

function isDigit(character: number | undefined): boolean {
  return character !== undefined && character >= 0x30 && character <= 0x39;
}

function isExponent(character: number | undefined): boolean {
  return character === 0x45 || character === 0x65;
}

function isInNumber(character: number | undefined): boolean {
  const isSign = character === 0x2b || character === byte.minus;
  return isDigit(character) || character === 0x2e || isSign || isExponent(character);
}

function tooDeep(): FermataError {
  const message = `The body is nested more than ${maxDepth} levels deep. Send flatter values.`;
  return new FermataError("invalid_json", message, { param: "body" });
}

/** A client that sends more behind the answer is left. */
const droppedBytes = 64 * 2 ** 20;
/** For the rest of a body to come, where the connection ends with the answer. */
const restMs = 5000;

/**
 * Of an answer that comes before the end of a body. Most clients read none before they have sent all, and a connection that is
 * closed while bytes of them are unread takes the answer with it. So the rest is read and dropped: before the answer, where
 * the connection ends with it.
 */
export function installUnreadBodies(app: FastifyInstance): void {
  app.addHook("onSend", async ({ raw }, reply) => {
    if (raw.complete || raw.destroyed) return;
    drop(raw);
    if (!reply.raw.shouldKeepAlive) await ended(raw);
  });
}

function drop(body: IncomingMessage): void {
  let dropped = 0;
  body.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > droppedBytes) body.destroy();
  });
  // It may have been paused.
  body.resume();
}

function ended(body: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, restMs).unref();
    finished(body, { writable: false }, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
