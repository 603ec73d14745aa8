import { expect, test } from "vitest";
import { fieldValue, questionContent, questionFields } from "../../../src/client/index.ts";

const firms = { type: "array", items: { type: "string", enum: ["Acme, Inc.", "Acme", "Beta"] } };
const titled = {
  type: "array",
  items: {
    anyOf: [
      { const: "a", title: "Acme, Inc." },
      { const: "b", title: "a" },
    ],
  },
};

test.each([
  ["Acme, Inc.", ["Acme, Inc."]],
  ["Beta,Acme, Inc. , Acme", ["Beta", "Acme, Inc.", "Acme"]],
  ["Acme, Other, Beta", ["Acme", "Other", "Beta"]],
  ["Acmeville", ["Acmeville"]],
  [" ", undefined],
])("typed choices: %s", (typed, values) => {
  expect(fieldValue(questionFields({ properties: { firms } })[0]!, typed)).toEqual(values);
});

test("a form's choices are its values, typed ones are values or labels", () => {
  const fields = questionFields({ properties: { titled } });
  expect(questionContent(fields, () => ["a", "b"])).toEqual({ titled: ["a", "b"] });
  expect(questionContent(fields, () => "Acme, Inc., b")).toEqual({ titled: ["a", "b"] });
  expect(questionContent(fields, () => [])).toEqual({});
});

test("a form's other values are what is typed in it", () => {
  const properties = {
    name: { type: "string" },
    count: { type: "integer" },
    tags: { type: "array", items: { type: "string" } },
  };
  const typed: Record<string, string[]> = { name: ["Ann, Bo"], count: ["3"], tags: ["x, y"] };
  const content = questionContent(questionFields({ properties }), (name) => typed[name]!);
  expect(content).toEqual({ name: "Ann, Bo", count: 3, tags: ["x", "y"] });
});
