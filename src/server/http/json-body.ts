/**
 * Bodies: JSON, also where curl calls it a form and `fetch` a text. What is nested deeper than any recursion over
 * it would bear is refused before it is parsed.
 */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Readable, Transform } from "node:stream";
import { FermataError } from "../../errors.ts";
import { bodyHash } from "./quarantine.ts";

/** Far above what a schema may have, far below what the stack holds. */
const maxDepth = 1000;
const jsonType = /^[\w.+-]+\/(?:[\w.+-]+\+)?json$/;
/** What programs call a body whose type they were not told. A browser asks before it sends any other. */
const untoldTypes = ["", "application/x-www-form-urlencoded", "text/plain"];

/** An empty body is none, since some clients send a type with every request. */
export function installJsonBody(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("*", { parseAs: "string" }, (request, body, done) => {
    if (body === "") return done(null, undefined);
    if (!hasJsonType(request) && !untoldTypes.includes(mediaType(request)))
      return done(
        new FermataError(
          "unsupported_media_type",
          'The body\'s type is not supported. Send JSON with the header "content-type: application/json".',
          { param: "content-type" },
        ),
      );
    if (app.connectionReports !== null) request.bodyHash = bodyHash(body);
    if (!isDeeperThan(body, maxDepth)) return parse(request, body, done);
    const message = `The body is nested more than ${maxDepth} levels deep. Send flatter values.`;
    done(new FermataError("invalid_json", message, { param: "body" }));
  });
}

/** Of all bodies that are on their way, in bytes: four of the largest. */
const defaultUnfinishedBytes = 128 * 2 ** 20;
/** Shorter ones that say so are not counted: requests may not be many enough to matter. */
const uncountedBytes = 64 * 2 ** 10;

/** Many clients that send slowly, or never end, must not fill the memory. @param limit in bytes */
export function installBodyBudget(app: FastifyInstance, limit = defaultUnfinishedBytes): void {
  let unfinished = 0;
  app.addHook("preParsing", (request, _reply, payload, done) => {
    if (Number(request.headers["content-length"] ?? Infinity) <= uncountedBytes)
      return done(null, payload);
    let counted = 0;
    const meter = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        counted += chunk.length;
        unfinished += chunk.length;
        next(unfinished > limit ? tooManyBytes(limit) : null, chunk);
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

function tooManyBytes(limit: number): FermataError {
  const message = `More than ${limit / 2 ** 20} MiB of requests are on their way. Send this one again in a moment.`;
  return new FermataError("queue_full", message, { param: "body" });
}

export function hasJsonType(request: FastifyRequest): boolean {
  return jsonType.test(mediaType(request));
}

/** Empty if none is told. */
function mediaType({ headers }: FastifyRequest): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

/** Of JSON text; of any other it does not matter. */
function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === "[" || character === "{") depth += 1;
    else if (character === "]" || character === "}") depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}

/** Index of the closing quote; the text's length if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
