/**
 * Bodies: JSON, also where curl calls it a form and `fetch` a text. What is nested deeper than any recursion over
 * it would bear is refused before it is parsed.
 */

import type { FastifyInstance, FastifyRequest } from "fastify";
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
