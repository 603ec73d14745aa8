import { expect, test } from "vitest";
import { qwen } from "../../../src/chat/formats/formats.ts";
import type { CallSyntax } from "../../../src/guidance/call-syntax.ts";

function write(syntax: CallSyntax, name: string, args: string): string {
  const body = syntax.body.map((part) => {
    if (typeof part === "string") return part;
    return part.part === "name" ? name : part.part === "arguments" ? args : "0";
  });
  return `${syntax.callOpen}${body.join("")}${syntax.callClose}`;
}

test("Hermes calls are what Qwen's template renders", () => {
  expect(write(qwen.syntax, "f", '{"a": 1}')).toBe(
    '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
  );
});
