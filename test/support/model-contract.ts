/** What a client may rely on whatever the model: the same tests for each, over HTTP, with the openai client. */

import { Ajv2020 } from "ajv/dist/2020.js";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type ServedCommand, serveCommand } from "./command-line.ts";

type Body = OpenAI.ChatCompletionCreateParamsNonStreaming;

const ajv = new Ajv2020();
const order = {
  type: "object",
  properties: {
    customer: {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer", minimum: 0, maximum: 120 } },
      required: ["name", "age"],
      additionalProperties: false,
    },
    size: { enum: ["small", "large"] },
    items: {
      type: "array",
      minItems: 1,
      maxItems: 3,
      items: {
        type: "object",
        properties: {
          dish: { type: "string" },
          count: { type: "integer", minimum: 1, maximum: 9 },
        },
        required: ["dish", "count"],
        additionalProperties: false,
      },
    },
    paid: { type: "boolean" },
  },
  required: ["customer", "size", "items", "paid"],
  additionalProperties: false,
};
const person = z.object({ name: z.string(), age: z.number().int(), likes: z.array(z.string()) });
const asked = "Invent an order in a restaurant: who ordered, what, and how many. Answer as JSON.";
const parameters = {
  type: "object",
  properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
  required: ["city", "unit"],
  additionalProperties: false,
};
const tools: OpenAI.ChatCompletionFunctionTool[] = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, description: `${name} of a city`, parameters },
}));

/** @param path of the model; undefined: the one that ships */
export function describeModel(name: string, path: string | undefined): void {
  describe(name, () => {
    let server: ServedCommand;
    let client: OpenAI;
    beforeAll(async () => {
      const model = path === undefined ? [] : ["--model", path];
      // The second of two equal requests finds the first one's prompt in the cache.
      server = await serveCommand("--store", "none", "--deterministic", ...model);
      client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    }, 120_000);
    afterAll(async () => {
      await server.stop();
    });

    const bodyOf = (question: string, fields: object): Body => ({
      model: "any",
      messages: [{ role: "user", content: question }],
      temperature: 0,
      max_tokens: 1000,
      ...fields,
    });

    /** Asked twice, as a stream too: the same choice, with no reasoning, since these models have none. */
    async function ask(question: string, fields: object): Promise<OpenAI.ChatCompletion.Choice> {
      const body = bodyOf(question, fields);
      const { choices } = await client.chat.completions.create(body);
      const streamed = await client.chat.completions
        .stream({ ...body, stream: true } as OpenAI.ChatCompletionCreateParamsStreaming)
        .finalChatCompletion();
      const [choice, again] = [choices[0]!, streamed.choices[0]!];
      expect(again.finish_reason).toBe(choice.finish_reason);
      expect(again.message.content).toBe(choice.message.content);
      const calls = (message: OpenAI.ChatCompletionMessage): unknown =>
        message.tool_calls?.map((call) => call.type === "function" && call.function);
      expect(calls(again.message)).toMatchObject(calls(choice.message) ?? {});
      for (const { message } of [choice, again]) {
        expect(message).not.toHaveProperty("reasoning_content");
        expect(message).not.toHaveProperty("validation_error");
      }
      return choice;
    }

    test("json_object is an object, and ends", async () => {
      const response_format = { type: "json_object" };
      for (const question of ["Give me JSON with the fields name and age.", "Hello!"]) {
        const { message, finish_reason } = await ask(question, { response_format });
        expect(finish_reason).toBe("stop");
        expect(JSON.parse(message.content!)).toBeTypeOf("object");
        expect(message.content).toMatch(/^\{/u);
      }
    });

    test.each<[string, object]>([
      [
        "response_format",
        { response_format: { type: "json_schema", json_schema: { name: "order", schema: order } } },
      ],
      [
        "strict",
        {
          response_format: {
            type: "json_schema",
            json_schema: { name: "order", schema: order, strict: true },
          },
        },
      ],
      ["guided_json_schema", { guided_json_schema: order }],
    ])("a schema with objects, arrays and enums holds: %s", async (_title, fields) => {
      const { message, finish_reason } = await ask(asked, fields);
      expect(finish_reason).toBe("stop");
      expect(ajv.validate(order, JSON.parse(message.content!)), ajv.errorsText()).toBe(true);
    });

    test("chat.completions.parse and responses.parse give the object", async () => {
      const question = "Invent a person with a name, an age and some likes.";
      const response_format = zodResponseFormat(person, "person");
      const { choices } = await client.chat.completions.parse(
        bodyOf(question, { response_format }),
      );
      expect(person.safeParse(choices[0]!.message.parsed).success).toBe(true);
      const format = zodTextFormat(person, "person");
      const { output_parsed, output } = await client.responses.parse({
        model: "any",
        input: question,
        temperature: 0,
        max_output_tokens: 1000,
        text: { format },
      });
      expect(person.safeParse(output_parsed).success).toBe(true);
      expect(output.map(({ type }) => type)).toEqual(["message"]);
    });

    test("what the limit cuts is length, and close_at_limit closes it", async () => {
      const response_format = { type: "json_object" };
      const cut = await ask(asked, { response_format, max_tokens: 6 });
      expect(cut.finish_reason).toBe("length");
      const closed = await ask(asked, { response_format, max_tokens: 12, close_at_limit: true });
      expect(JSON.parse(closed.message.content!)).toBeTypeOf("object");
    });

    test.each<[string, unknown, readonly string[]]>([
      ["required", "required", ["get_weather", "get_time"]],
      ["a name", { type: "function", function: { name: "get_time" } }, ["get_time"]],
    ])("tool_choice %s is a call that its schema takes", async (_title, tool_choice, names) => {
      const choice = await ask("What is the weather in Rome?", { tools, tool_choice });
      expect(choice.finish_reason).toBe("tool_calls");
      const [call] = choice.message.tool_calls!;
      if (call?.type !== "function") throw new TypeError("not a function");
      expect(names).toContain(call.function.name);
      expect(ajv.validate(parameters, JSON.parse(call.function.arguments)), ajv.errorsText()).toBe(
        true,
      );
    });

    test("tools and a form together are a call or a document", async () => {
      const response_format = { type: "json_object" };
      const { message, finish_reason } = await ask("Hello!", { tools, response_format });
      if (finish_reason === "tool_calls") expect(message.tool_calls!.length).toBeGreaterThan(0);
      else expect(JSON.parse(message.content!)).toBeTypeOf("object");
    });

    test("an effort changes nothing where the model cannot think", async () => {
      const plain = await ask("Hello!", { max_tokens: 30, tool_choice: "none" });
      for (const reasoning_effort of ["none", "minimal", "high"]) {
        const choice = await ask("Hello!", {
          max_tokens: 30,
          tool_choice: "none",
          reasoning_effort,
        });
        expect(choice.message.content).toBe(plain.message.content);
      }
    });

    test("an answer that was begun is continued", async () => {
      const begun = { role: "assistant", content: "Rome is the" } as const;
      const messages = [{ role: "user", content: "What is Rome?" } as const, begun];
      const { message } = await ask("", { messages, max_tokens: 12, tool_choice: "none" });
      expect(message.content).not.toBe("");
      expect(message.content).not.toContain(begun.content);
      const response = await fetch(`${server.url}/apply-template`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ messages }),
      });
      expect(((await response.json()) as { prompt: string }).prompt).toMatch(/Rome is the$/u);
    });
  });
}
