/**
 * Requests made from the OpenAPI document to every endpoint: whatever comes, the answer is what the document
 * says or names the field at fault. FERMATA_FUZZ_RUNS sets how many an endpoint gets. The model is a fake;
 * test/e2e/openapi-fuzz.test.ts does the same over the engine.
 */

import { afterAll, describe, expect, test } from "vitest";
import type { OpenApiDocument } from "../../src/server/http/openapi.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import { existingThing, fuzz, fuzzedOperations, type FuzzTarget } from "../support/openapi-fuzz.ts";
import { fakeEmbedder, fakeReranker } from "./fake-services.ts";
import { createResponsesWorld } from "./responses-world.ts";

const runs = Number(process.env["FERMATA_FUZZ_RUNS"] ?? 200);
const seed = Number(process.env["FERMATA_FUZZ_SEED"] ?? 4);
const approvals = new Approvals();
const config = { logger: undefined };
const world = await createResponsesWorld({
  embedder: fakeEmbedder,
  reranker: fakeReranker,
  approvals,
  config,
});
afterAll(() => world.close());

const document = (await world.app.inject({ url: "/openapi.json" })).json<OpenApiDocument>();

let calls = 0;
const target: FuzzTarget = {
  async existing({ path }) {
    if (path.startsWith("/api/approvals")) {
      const call = { owner: "anonymous", server: "s", toolName: "t", arguments: "{}" };
      void approvals.ask({ ...call, callId: `call_${++calls}` }, new AbortController().signal);
      return { call_id: `call_${calls}` };
    }
    return await existingThing(path, async (...request) => (await world.call(...request)).body);
  },
  async send(method, url, body) {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const payload = body === undefined ? {} : { payload: body };
    const reply = await world.app.inject({ method, url, headers, ...payload });
    const type = String(reply.headers["content-type"]);
    return { status: reply.statusCode, type, body: reply.body };
  },
};

describe.each(fuzzedOperations(document).map((one) => [`${one.method} ${one.path}`, one] as const))(
  "%s",
  (_name, operation) => {
    test(
      `${runs} requests`,
      async () => {
        const { answered, refused } = await fuzz(operation, target, { runs, seed });
        expect(answered + refused).toBe(runs);
        // Both ways are taken, where there are two.
        if (operation.body !== null || operation.parameters.length > 0)
          expect(refused).toBeGreaterThan(0);
        // No response waits for outputs; the one model that is served stays in memory.
        const isAnswered = !/tool_outputs$|unload$/.test(operation.path);
        if (isAnswered) expect(answered).toBeGreaterThan(0);
      },
      60_000 + runs * 60,
    );
  },
);
