/**
 * Bodies made from the OpenAPI document, most of them a little wrong: whatever comes, the answer is an
 * answer or names the field at fault. FERMATA_FUZZ_RUNS sets how many an endpoint gets.
 */

import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { OpenApiDocument } from "../../src/server/openapi/document.ts";
import { nearly } from "../support/schema-arbitrary.ts";
import { createResponsesWorld } from "./responses-world.ts";

const runs = Number(process.env["FERMATA_FUZZ_RUNS"] ?? 200);
const world = createResponsesWorld({ config: { logger: undefined } });
afterAll(() => world.close());

/** Of things that exist, so that requests come further than to a 404. */
async function pathFor(template: string): Promise<string> {
  if (!template.includes("{id}")) return template;
  const isConversation = template.startsWith("/v1/conversations");
  const { body } = isConversation
    ? await world.call("POST", "/v1/conversations", {})
    : await world.call("POST", "/v1/responses", { input: "Hi" });
  return template.replace("{id}", body.id);
}

interface Operation {
  requestBody?: { content: { "application/json": { schema: Record<string, unknown> } } };
}

const { paths } = (await world.app.inject({ url: "/openapi.json" })).json<OpenApiDocument>();
const posts = Object.entries(paths).flatMap(([path, methods]) => {
  const body = (methods["post"] as Operation | undefined)?.requestBody;
  return body === undefined ? [] : [[path, body.content["application/json"].schema] as const];
});

describe.each(posts)("POST %s", (template, schema) => {
  test(
    `${runs} bodies`,
    async () => {
      const path = await pathFor(template);
      const seen = { answered: 0, refused: 0 };
      const property = fc.asyncProperty(nearly(schema), async (body) => {
        const payload = JSON.stringify(body);
        const headers = { "content-type": "application/json" };
        const reply = await world.app.inject({ method: "POST", url: path, payload, headers });
        const text = reply.body;
        if (reply.statusCode === 200) {
          seen.answered++;
          return;
        }
        seen.refused++;
        expect(reply.statusCode, text).toBeGreaterThanOrEqual(400);
        expect(reply.statusCode, text).toBeLessThan(500);
        const { error } = reply.json() as { error: { message: string; param: string | null } };
        expect(error.message, text).toMatch(/\S/);
        expect(error.param, text).toMatch(/\S/);
      });
      await fc.assert(property, { numRuns: runs, seed: 4, endOnFailure: runs > 1000 });
      expect(seen.refused).toBeGreaterThan(0);
    },
    30_000 + runs * 60,
  );
});
