import { describe, expect, test } from "vitest";
import { directoryWith, serveConfig } from "../../support/serve-config.ts";

describe("parts of an option", () => {
  const whole = { silence: 60, call: 600, answer: 1800, approval: 300, output: 300 };

  test("are given by name, a bare number is the first, and a longer one lengthens what holds it", () => {
    const timeouts = (text: string) => serveConfig(["--tool-timeout", text]).toolTimeout;
    expect(timeouts("90")).toEqual({ ...whole, silence: 90 });
    expect(timeouts("3000")).toEqual({ ...whole, silence: 3000, call: 3000, answer: 3000 });
    expect(timeouts("3000, answer=10")).toEqual({
      ...whole,
      silence: 3000,
      call: 3000,
      answer: 10,
    });
    expect(timeouts("approval=9,output=8")).toEqual({ ...whole, approval: 9, output: 8 });
    expect(serveConfig([], { FERMATA_TOOL_TIMEOUT: "call=7" }).toolTimeout).toEqual({
      ...whole,
      call: 7,
    });
    const cwd = directoryWith({ "fermata.json": '{"toolTimeout": 5}' });
    expect(serveConfig([], {}, cwd).toolTimeout).toEqual({ ...whole, silence: 5 });
    expect(serveConfig(["--store-limits", "days=2"]).storeLimits).toEqual({
      days: 2,
      responses: 10_000,
      megabytes: 1024,
    });
  });

  test.each([
    [["--tool-timeout", "60s"], "--tool-timeout needs a whole number, or silence=N"],
    [["--tool-timeout", "slience=5"], 'has no part "slience"'],
    [["--tool-timeout", "slience=5"], "Did you mean silence?"],
    [["--tool-timeout", "call=0"], "--tool-timeout: call must be from 1 to 86400, not 0"],
    [["--tool-timeout", "call=5,"], "needs a whole number"],
  ])("%j is refused", (args, message) => {
    expect(() => serveConfig(args)).toThrow(message);
  });

  test.each([
    ['{"toolTimeout": {"call": "5"}}', '"toolTimeout": call needs a whole number'],
    ['{"toolTimeout": {"calls": 5}}', "Did you mean call?"],
    ['{"toolTimeout": "x"}', '"toolTimeout" needs a whole number, or an object'],
    ['{"toolTimeout": 0}', "silence must be from 1"],
  ])("fermata.json %s is refused", (text, message) => {
    expect(() => serveConfig([], {}, directoryWith({ "fermata.json": text }))).toThrow(message);
  });
});

describe("an option of before names what says the same today", () => {
  test.each([
    ["toolTotalTimeout", "tool-total-timeout", "--tool-timeout call=SECONDS"],
    ["maxToolSeconds", "max-tool-seconds", "--tool-timeout answer=SECONDS"],
    ["approvalTimeout", "approval-timeout", "--tool-timeout approval=SECONDS"],
    ["responsesToolTimeout", "responses-tool-timeout", "--tool-timeout output=SECONDS"],
    ["maxToolCalls", "max-tool-calls", "--max-tool-rounds"],
    ["storeDays", "store-days", "--store-limits days=N"],
    ["drainSeconds", "drain-seconds", "--process-timeout drain=SECONDS"],
    ["hangTimeout", "hang-timeout", "--process-timeout loop=SECONDS"],
  ])("%s", (key, flag, today) => {
    const refusal = (name: string) => expect.stringContaining(`${name} is gone: use ${today}`);
    const error = (name: string) =>
      expect.objectContaining({ code: "invalid_option", message: refusal(name) as string });
    expect(() => serveConfig([`--${flag}`, "5"])).toThrow(error(`--${flag}`));
    const variable = `FERMATA_${flag.replaceAll("-", "_").toUpperCase()}`;
    expect(() => serveConfig([], { [variable]: "5" })).toThrow(error(variable));
    const cwd = directoryWith({ "fermata.json": `{"${key}": 5}` });
    expect(() => serveConfig([], {}, cwd)).toThrow(error(`fermata.json: "${key}"`));
  });
});

describe("a key that is set but empty is a mistake, not a server without a key", () => {
  test.each<[name: string, args: string[], env: NodeJS.ProcessEnv]>([
    ["FERMATA_API_KEY", [], { FERMATA_API_KEY: "" }],
    ["FERMATA_API_KEY", [], { FERMATA_API_KEY: " \n" }],
    ["--api-key", ["--api-key="], {}],
    ["--api-key", ["--api-key", "  "], {}],
  ])("%s", (name, args, env) => {
    expect(() => serveConfig(args, env)).toThrow(`${name} needs a value.`);
  });

  test.each(['""', "[]", '[""]', '["a", " "]'])("in a file: %s", (value) => {
    const cwd = directoryWith({ "options.json": `{"apiKey": ${value}}` });
    expect(() => serveConfig(["--config", "options.json"], {}, cwd)).toThrow(
      '"apiKey" needs a value.',
    );
  });

  test("space around a key is not part of it", () => {
    expect(serveConfig([], { FERMATA_API_KEY: "abc\n" }).apiKey).toEqual(["abc"]);
  });

  test("a key and --no-auth exclude each other", () => {
    expect(() => serveConfig(["--api-key", "k", "--no-auth"])).toThrow("exclude each other");
  });
});
