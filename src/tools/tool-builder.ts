/** Builds a tool from a function. */

import type { JsonSchema, ToolDefinition } from "../chat/types.ts";
import type { Tool, ToolResult } from "./types.ts";

export type ParameterType = "string" | "number" | "integer" | "boolean" | "object" | "array";

/** What a tool's function may return. Anything but text and a ToolResult is sent to the model as JSON. */
export type ToolFunction = (args: Record<string, unknown>, signal: AbortSignal) => unknown;

export class ToolBuilder {
  readonly #name: string;
  readonly #description: string;
  readonly #properties: Record<string, JsonSchema> = {};
  readonly #required: string[] = [];

  constructor(name: string, description: string) {
    this.#name = name;
    this.#description = description;
  }

  /** `type`: a JSON type, or a whole schema. */
  param(
    name: string,
    type: ParameterType | JsonSchema,
    description: string,
    required: boolean,
  ): this {
    this.#properties[name] = { ...(typeof type === "string" ? { type } : type), description };
    if (required) this.#required.push(name);
    return this;
  }

  build(): ToolDefinition {
    return {
      name: this.#name,
      description: this.#description,
      parameters: {
        type: "object",
        properties: { ...this.#properties },
        required: [...this.#required],
      },
    };
  }

  /** The definition together with the function that runs it. */
  run(run: ToolFunction, server = "function"): Tool {
    return toTool(this.build(), run, server);
  }
}

/** `defineTool("get_weather", "Get weather for a location").param("location", "string", "City name", true).build()` */
export function defineTool(name: string, description: string): ToolBuilder {
  return new ToolBuilder(name, description);
}

function toTool(definition: ToolDefinition, run: ToolFunction, server: string): Tool {
  return {
    definition,
    server,
    async call(args, signal): Promise<ToolResult> {
      try {
        return toResult(await run(args as Record<string, unknown>, signal));
      } catch (error) {
        return { content: error instanceof Error ? error.message : String(error), isError: true };
      }
    },
  };
}

function toResult(value: unknown): ToolResult {
  if (typeof value === "string") return { content: value, isError: false };
  if (isToolResult(value)) return value;
  return { content: JSON.stringify(value) ?? "", isError: false };
}

function isToolResult(value: unknown): value is ToolResult {
  if (typeof value !== "object" || value === null) return false;
  const { content, isError } = value as Partial<ToolResult>;
  return typeof content === "string" && typeof isError === "boolean";
}
