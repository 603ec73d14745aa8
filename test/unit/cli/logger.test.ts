import { expect, test } from "vitest";
import { formatLogLine } from "../../../src/cli/logger.ts";

test("a line for a terminal", () => {
  const line = formatLogLine(
    '{"level":30,"time":0,"msg":"tool call ended","server":"fs","note":"a b","n":5}\n',
  );
  expect(line).toMatch(/^\d\d:\d\d:\d\d info  tool call ended  server=fs note="a b" n=5\n$/);
});
