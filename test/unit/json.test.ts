// What texts that are JSON, or nearly, become: numbers to their last digit, and no text that is too much for the stack.
import { describe, expect, it } from "vitest";
import { exactJson, maxDepth, parseExactJson, parseJson } from "../../src/json.ts";

const nested = (levels: number, inner: string): string =>
  "[".repeat(levels) + inner + "]".repeat(levels);

describe.each([parseJson, parseExactJson])("%o", (parse) => {
  it.each(["1", "1.0"])("takes no text that is nested too deep for a recursion: %s", (inner) => {
    expect(parse(nested(maxDepth, inner))).toBeInstanceOf(Array);
    expect(parse(nested(maxDepth + 1, inner))).toBeUndefined();
    expect(parse(nested(100_000, inner))).toBeUndefined();
    expect(parse(`{"a":${nested(maxDepth, inner)}}`)).toBeUndefined();
  });
});

it.each([
  '{"a":"1.0","b":1.50,"\\"2.0":[-0,1e400,12345678901234567890,"\\\\",1.0]}',
  '{"__proto__":1.0,"a":{"__proto__":[2.50]}}',
  '["\\u0031.50","-0",-0]',
])("numbers stay as they are written, and texts that look like them too: %s", (text) => {
  expect(exactJson(parseExactJson(text))).toBe(text.replace("\\u0031", "1"));
});

it.each([
  ["x", "x".repeat(2 ** 24)],
  ["escapes", '\\n\\"'.repeat(2 ** 20)],
])("digits behind a long text are kept: %s", (_name, text) => {
  const json = `{"a":"${text}","b":1.50}`;
  expect(exactJson(parseExactJson(json)) === json).toBe(true);
});
