/** A parameter of an address has one value; given twice, it would be a list where routes read a text. */

import type { FastifyInstance } from "fastify";
import { fieldError } from "../body/fields.ts";

const maxNameLength = 64;

export function installSingleQuery(app: FastifyInstance): void {
  app.addHook("onRequest", async ({ query }) => {
    for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
      if (!Array.isArray(value) || isList(name)) continue;
      const problem = "is given more than once";
      throw fieldError("invalid_value", name.slice(0, maxNameLength), problem, "Send it once");
    }
  });
}

/** As OpenAI's clients write lists. */
function isList(name: string): boolean {
  return name === "include" || name.endsWith("[]");
}
