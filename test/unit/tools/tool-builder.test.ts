import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Tool } from "../../../src/tools/tool-builder.ts";
import type { StandardSchema } from "../../../src/tools/standard-schema.ts";
import { toolContext } from "../../support/tool-context.ts";

const context = toolContext();

test("the seed's example", () => {
  const tool = Tool.function("get_weather", "Get weather for a location")
    .param("location", "string", "City name", true)
    .param("unit", "string", "Temperature unit", false)
    .build();
  expect(tool).toEqual({
    type: "function",
    function: {
      name: "get_weather",
      description: "Get weather for a location",
      parameters: {
        type: "object",
        properties: {
          location: { type: "string", description: "City name" },
          unit: { type: "string", description: "Temperature unit" },
        },
        required: ["location"],
      },
    },
  });
});

describe("Standard Schema", () => {
  const schema = z.object({ city: z.string().min(2), days: z.number().int().default(3) });

  test("zod's object is the parameters, without its dialect", () => {
    const { parameters } = Tool.function("f", "F").parameters(schema).build().function;
    expect(parameters).toMatchObject({
      type: "object",
      properties: { city: { type: "string", minLength: 2 }, days: { type: "integer" } },
      required: ["city"],
    });
    expect(parameters).not.toHaveProperty("$schema");
  });

  test("the function gets what the schema makes of the arguments", async () => {
    const tool = Tool.function("f", "F")
      .parameters(schema)
      .run((args) => args);
    expect(await tool.call({ city: "Rome" }, context)).toEqual({
      content: '{"city":"Rome","days":3}',
      isError: false,
    });
    const refused = await tool.call({ city: "R" }, context);
    expect(refused.isError).toBe(true);
    expect(refused.content).toMatch(/^The arguments do not fit: city: /u);
  });

  test("one parameter may be one too", () => {
    const { parameters } = Tool.function("f", "F")
      .param("n", z.int().max(9), "A digit", true)
      .build().function;
    expect(parameters["properties"]).toMatchObject({ n: { type: "integer", maximum: 9 } });
  });

  test("a library that does not convert says what to do", () => {
    const plain: StandardSchema = {
      "~standard": { version: 1, vendor: "valibot", validate: (value) => ({ value }) },
    };
    expect(() => Tool.function("f", "F").parameters(plain)).toThrow(/toStandardJsonSchema/u);
  });
});
