import { expect, test } from "vitest";
import { fromThrown } from "../../../src/engine/native-errors.ts";

test("a panic of the mask engine is told without its stack", () => {
  const message = "panic: too many symbols\n<backtrace>\n   0: catch_unwind\n at /rustc/lib.rs";
  const thrown = Object.assign(new Error(message), { code: "grammar_invalid" });
  expect(fromThrown(thrown)).toMatchObject({
    code: "invalid_grammar",
    message: "panic: too many symbols",
    cause: thrown,
  });
});
