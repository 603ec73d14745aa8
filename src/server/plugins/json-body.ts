/** JSON bodies. What is nested deeper than any recursion over it would bear is refused before it is parsed. */

import type { FastifyInstance } from "fastify";
import { FermataError } from "../../errors.ts";

/** Far above what a schema may have, far below what the stack holds. */
const maxDepth = 1000;

export function installJsonBody(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser<string>(
    "application/json",
    { parseAs: "string" },
    (request, body, done) => {
      if (!isDeeperThan(body, maxDepth)) return parse(request, body, done);
      const message = `The body is nested more than ${maxDepth} levels deep. Send flatter values.`;
      done(new FermataError("invalid_json", message, { param: "body" }));
    },
  );
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
