import { describe, expect, it } from "vitest";

import { nearNames } from "../../../src/near-names.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { ToolParser } from "../../../src/tools/tool-parser.ts";
import { toolContext } from "../../support/tool-context.ts";

describe("ToolParser", () => {
  it("finds the calls of a text in every form", () => {
    const object = '{"name": "get_weather", "arguments": {"location": "Tokyo"}}';
    for (const text of [
      `I'll check.\n<tool_call>\n${object}\n</tool_call>`,
      object,
      `\`\`\`json ${object} \`\`\``,
    ]) {
      const calls = new ToolParser().parse(text);
      expect(calls.map(({ name, arguments: args }) => [name, args])).toEqual([
        ["get_weather", '{"location": "Tokyo"}'],
      ]);
    }
  });

  it("takes a bare word for a text, whatever it is called", () => {
    const parser = new ToolParser({ tools: ["find"], format: "llama4" });
    const calls = parser.parse("[find(name=constructor, all=True, none=toString)]");
    expect(calls.map(({ arguments: args }) => JSON.parse(args))).toEqual([
      { name: "constructor", all: true, none: "toString" },
    ]);
  });

  it("takes bare JSON for a call only if it names a tool, and keeps the rest", () => {
    const parser = new ToolParser({ tools: ["ping"] });
    const text =
      '<think>Hm.</think>Hi.\n{"name": "other", "arguments": {}}\n{"name": "ping", "arguments": {}}';
    const { reasoning, content, calls } = parser.parseOutput(text);
    expect({ reasoning, content }).toEqual({
      reasoning: "Hm.",
      content: 'Hi.\n{"name": "other", "arguments": {}}',
    });
    expect(calls.map(({ name }) => name)).toEqual(["ping"]);
  });
});

describe("defineTool", () => {
  const builder = defineTool("get_weather", "Get weather for a location")
    .param("location", "string", "City name", true)
    .param("unit", { type: "string", enum: ["celsius", "fahrenheit"] }, "Temperature unit", false);

  it("builds a definition", () => {
    expect(builder.build().function).toEqual({
      name: "get_weather",
      description: "Get weather for a location",
      parameters: {
        type: "object",
        properties: {
          location: { type: "string", description: "City name" },
          unit: {
            type: "string",
            enum: ["celsius", "fahrenheit"],
            description: "Temperature unit",
          },
        },
        required: ["location"],
      },
    });
  });

  it.each<[unknown, { content: string; isError: boolean }]>([
    ["text", { content: "text", isError: false }],
    [{ a: 1 }, { content: '{"a":1}', isError: false }],
    [undefined, { content: "", isError: false }],
    [
      { content: "no", isError: true },
      { content: "no", isError: true },
    ],
  ])("makes a tool of a function that returns %j", async (value, result) => {
    const tool = builder.run(() => value, "here");
    expect(tool.server).toBe("here");
    expect(await tool.call({}, toolContext())).toEqual(result);
  });

  it("makes a result of what the function throws", async () => {
    const tool = builder.run(() => Promise.reject(new RangeError("too far")));
    expect(await tool.call({}, toolContext())).toEqual({
      content: "too far",
      isError: true,
    });
  });
});

describe("nearNames", () => {
  it("lists the nearest first", () => {
    const known = ["read_file", "filesystem_read_text_file", "write_file", "list_directory"];
    expect(nearNames("filesystem_read_file", known)).toEqual([
      "read_file",
      "filesystem_read_text_file",
    ]);
    expect(nearNames("Read_File", known)[0]).toBe("read_file");
    expect(nearNames("list_dir", known)).toEqual([]);
    expect(nearNames("quantum", known)).toEqual([]);
  });
});
