import { expect, test } from "vitest";
import { compileValidator } from "../../../src/guidance/validator.ts";

test("names the place and the problem", () => {
  const validate = compileValidator(
    { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    "draft-2020-12",
  );
  expect(validate({ n: 1 })).toBeNull();
  expect(validate({ n: "1" })).toBe("/n must be integer");
  expect(validate({})).toBe("/ must have required property 'n'");
});

test("knows both drafts and formats", () => {
  const tuple = { items: [{ type: "string" }] };
  expect(compileValidator(tuple, "draft-07")([1])).toBe("/0 must be string");
  const prefix = { prefixItems: [{ type: "string" }] };
  expect(compileValidator(prefix, "draft-2020-12")([1])).toBe("/0 must be string");
  const email = { type: "string", format: "email" };
  expect(compileValidator(email, "draft-2020-12")("nobody")).toBe('/ must match format "email"');
});
