// The functions of the Berkeley Function Calling Leaderboard as tools.
import { readFileSync } from "node:fs";
import type { JsonSchema, ToolDefinition } from "../../src/chat/types.ts";

const types: Record<string, string | undefined> = {
  dict: "object",
  float: "number",
  tuple: "array",
  any: undefined,
};

/** Python's types as JSON Schema's; names as a tool may have them. */
export function bfclTools(): ToolDefinition[] {
  const url = new URL("../fixtures/bfcl/functions.jsonl", import.meta.url);
  return readFileSync(url, "utf8")
    .trim()
    .split("\n")
    .map((line, index) => {
      const { name, parameters } = JSON.parse(line) as { name: string; parameters: unknown };
      const legal = name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, 50);
      return { name: `${legal}_${index}`, parameters: toSchema(parameters) };
    });
}

function toSchema(value: unknown): JsonSchema {
  const schema: JsonSchema = {};
  for (const [key, item] of Object.entries(value as JsonSchema)) {
    if (key === "type" && typeof item === "string") {
      const type = item in types ? types[item] : item;
      if (type !== undefined) schema["type"] = type;
    } else if (key === "properties")
      schema[key] = Object.fromEntries(
        Object.entries(item as JsonSchema).map(([name, property]) => [name, toSchema(property)]),
      );
    else if (key === "items") schema[key] = toSchema(item);
    // `optional` is no keyword, and defaults say nothing of what is valid.
    else if (key !== "optional" && key !== "default") schema[key] = item;
  }
  return schema;
}
