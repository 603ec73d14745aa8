/** Builds a tool from a function. */

import type { JsonSchema, ToolDefinition } from "../chat/types.ts";
import {
  type StandardSchema,
  isStandardSchema,
  jsonSchemaOf,
  parseWith,
} from "./standard-schema.ts";
import type { Tool as RunnableTool, ToolCallContext, ToolResult } from "./types.ts";

export type ParameterType = "string" | "number" | "integer" | "boolean" | "object" | "array";

/** What a tool's function may return. Anything but text and a ToolResult is sent to the model as JSON. */
export type ToolFunction = (args: Record<string, unknown>, context: ToolCallContext) => unknown;

/** OpenAI's form of a tool. */
export interface FunctionTool {
  type: "function";
  function: ToolDefinition;
}

export class ToolBuilder {
  readonly #name: string;
  readonly #description: string;
  readonly #properties: Record<string, JsonSchema> = {};
  readonly #required: string[] = [];
  #schema: StandardSchema | null = null;
  #readOnly = false;

  constructor(name: string, description: string) {
    this.#name = name;
    this.#description = description;
  }

  /** `type`: a JSON type, a whole JSON Schema, or a schema of zod, valibot or arktype. */
  param(
    name: string,
    type: ParameterType | JsonSchema | StandardSchema,
    description: string,
    required: boolean,
  ): this {
    this.#properties[name] = { ...schemaOf(type), description };
    if (required) this.#required.push(name);
    return this;
  }

  /**
   * All parameters at once, as an object schema of zod, valibot or arktype. The function gets what the
   * schema makes of the arguments. Excludes `param`.
   * @throws FermataError invalid_value when it does not convert to JSON Schema
   */
  parameters(schema: StandardSchema): this {
    jsonSchemaOf(schema);
    this.#schema = schema;
    return this;
  }

  /** It changes nothing: a call may run as soon as its arguments are complete, even if its turn is cut then. */
  readOnly(): this {
    this.#readOnly = true;
    return this;
  }

  /** What a request's `tools` takes. */
  build(): FunctionTool {
    return { type: "function", function: this.#definition() };
  }

  /** The definition together with the function that runs it. */
  run(run: ToolFunction, server = "function"): RunnableTool {
    const schema = this.#schema;
    const parsed: ToolFunction =
      schema === null
        ? run
        : async (args, context) =>
            await run((await parseWith(schema, args)) as Record<string, unknown>, context);
    return { ...toTool(this.#definition(), parsed, server), readOnly: this.#readOnly };
  }

  #definition(): ToolDefinition {
    return {
      name: this.#name,
      description: this.#description,
      parameters:
        this.#schema === null
          ? {
              type: "object",
              properties: { ...this.#properties },
              required: [...this.#required],
            }
          : jsonSchemaOf(this.#schema),
    };
  }
}

function schemaOf(type: ParameterType | JsonSchema | StandardSchema): JsonSchema {
  if (typeof type === "string") return { type };
  return isStandardSchema(type) ? jsonSchemaOf(type) : type;
}

/** `defineTool("get_weather", "Get weather for a location").param("location", "string", "City name", true).build()` */
export function defineTool(name: string, description: string): ToolBuilder {
  return new ToolBuilder(name, description);
}

/** `Tool.function("get_weather", "Get weather for a location").param("location", "string", "City name", true).build()` */
export const Tool = { function: defineTool } as const;
export type Tool = RunnableTool;

function toTool(definition: ToolDefinition, run: ToolFunction, server: string): RunnableTool {
  return {
    definition,
    server,
    async call(args, context): Promise<ToolResult> {
      try {
        return toResult(await run(args as Record<string, unknown>, context));
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
