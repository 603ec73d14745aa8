/** Biases that name tokens by texts: each text is tokenized, so their number has a limit of its own. */

import { expect, test } from "vitest";
import { createWorld, finish, post } from "./fake-services.ts";

const texts = (count: number) => Array.from({ length: count }, (_, index) => `word ${index}`);
const body = (bias: object) => ({ messages: [{ role: "user", content: "Hi" }], logit_bias: bias });

function world() {
  const made = createWorld();
  made.chat.script = [{ type: "content", text: "Hello" }, finish("stop")];
  return made;
}

test.each([
  ["an object", Object.fromEntries(texts(1001).map((text) => [text, 1]))],
  ["pairs", texts(1001).map((text) => [text, 1])],
])("too many texts in %s are refused", async (_form, bias) => {
  const reply = await post(world().app, body(bias));
  expect(reply.statusCode).toBe(400);
  expect(reply.json().error).toMatchObject({
    code: "invalid_value",
    param: "logit_bias",
    message: expect.stringContaining("at most 1000 texts"),
  });
});

test("as many as the limit are taken, beside ids", async () => {
  const bias = [...texts(1000).map((text) => [text, 1]), [1, 1], [2, 1]];
  const reply = await post(world().app, body(bias));
  expect(reply.statusCode).toBe(200);
});
