import { describe, expect, it } from "vitest";
import type { Chat } from "../../../src/chat/chat.ts";
import type { ChatEvent, ChatRequest, ToolDefinition } from "../../../src/chat/types.ts";
import { FermataError } from "../../../src/errors.ts";
import type { DocumentFormat, Guidance } from "../../../src/guidance/types.ts";
import { finish } from "../../../src/parts.ts";
import { parseMessagesRequest } from "../../../src/server/messages/request.ts";
import { readFields } from "../../../src/server/body/field.ts";
import { documentFields, documentOf as formOf } from "../../../src/server/body/guidance.ts";
import { greedy } from "../../support/sampling.ts";
import { chatml, request, setUp, weather } from "./chat-fixtures.ts";

const auto: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };
const search: ToolDefinition = {
  name: "search",
  parameters: {
    type: "object",
    properties: { q: { type: "string", not: { pattern: "^\\p{Lu}" } } },
    required: ["q"],
  },
};
const call = (text: string): string =>
  `<tool_call>\n{"name": "search", "arguments": {"q": "${text}"}}\n</tool_call>`;

const counted = { type: "object", maxProperties: 2 };

async function run(rounds: string[], partial: Partial<ChatRequest>, refuses = false) {
  const { engine, chat } = setUp(rounds);
  engine.refusesGrammars = refuses;
  const generation = chat.generate(request(partial));
  const events: ChatEvent[] = [];
  for await (const event of generation) {
    events.push(event);
    if (event.type === "hold")
      await generation.resume(
        event.calls.map(({ id, name }) => ({ callId: id, name, content: "ok" })),
      );
  }
  const finish = events.findLast((event) => event.type === "finish");
  return { engine, finish: finish as Extract<ChatEvent, { type: "finish" }> };
}

function documentOf(body: Record<string, unknown>): DocumentFormat | undefined {
  return formOf(readFields(documentFields, body, { warn: () => {} }));
}

function claudeDocumentOf(output_config: object): DocumentFormat | undefined {
  const messages = [{ role: "user", content: "Hi" }];
  const limits = { sampling: greedy, contextSize: 1000, vocabularySize: 500 };
  return finish(parseMessagesRequest({ messages, max_tokens: 9, output_config }, limits, () => {}))
    .guidance.document;
}

/** Of the rounds, the engine's trials left out. */
function bodies(grammars: readonly { text: string }[]): string[] {
  return grammars.map(({ text }) => /^body: (.*)$/mu.exec(text)?.[1] ?? "");
}

describe("the grammar of a round", () => {
  it("is there with tools, and not without", async () => {
    const guided = await run(["Hi"], { tools: [weather], toolMode: "external" });
    expect(guided.engine.grammars[0]?.text).toContain("get_weather");
    expect(guided.engine.last.request.grammar).toBeDefined();
    const free = await run(["Hi"], { tools: [], toolMode: "none" });
    expect(free.engine.grammars).toEqual([]);
    expect(free.engine.last.request.grammar).toBeUndefined();
  });

  it("demands a call in the first round only", async () => {
    const { engine } = await run([call("a"), "Done."], {
      tools: [search],
      toolMode: "internal",
      guidance: { ...auto, toolChoice: "required" },
    });
    const [first, second] = bodies(engine.grammars);
    expect(first).toBe('"<tool_call>" first_call');
    expect(second).toContain("before_calls first_call");
    expect(second).toMatch(/FREE|TEXT/u);
  });

  it("knows only the tools that may be called, and one call if there may be one", async () => {
    const { engine } = await run(["Hi"], {
      tools: [weather, search],
      toolMode: "external",
      guidance: { ...auto, allowed: ["search"], parallel: false },
    });
    const { text } = engine.grammars[0]!;
    expect(text).toContain("search");
    expect(text).not.toContain("get_weather");
    expect(/^first_call: (.*)$/mu.exec(text)?.[1]).not.toContain("{0,");
  });

  it("is a call or a document when both are asked for", async () => {
    const { engine } = await run(["{}"], {
      tools: [search],
      toolMode: "external",
      guidance: { ...auto, document: { kind: "json_object" } },
    });
    expect(bodies(engine.grammars)[0]).toMatch(/first_call \|\s+document$/u);
  });

  it("is the client's own where it is GBNF", async () => {
    const text = 'root ::= "a" # root';
    const document = { kind: "grammar", text, field: "guided_grammar" } as const;
    const { engine } = await run(["a"], {
      tools: [],
      toolMode: "none",
      guidance: { ...auto, document },
    });
    expect(engine.grammars[0]).toEqual({ kind: "gbnf", text });
    const withTools = run(["a"], {
      tools: [search],
      toolMode: "external",
      guidance: { ...auto, document },
    });
    await expect(withTools).rejects.toMatchObject({ param: "guided_grammar" });
  });
});

describe("requests with the same tools", () => {
  const external = (partial: Partial<ChatRequest>): ChatRequest =>
    request({ tools: structuredClone([weather, search]), toolMode: "external", ...partial });
  const answer = async (chat: Chat, partial: Partial<ChatRequest> = {}): Promise<void> => {
    for await (const _ of chat.generate(external(partial)));
  };

  it("share a grammar, which is made once", async () => {
    const { engine, chat } = setUp(["Hi", "Hi", "Hi", "Hi"]);
    await answer(chat);
    await answer(chat);
    await answer(chat, { guidance: { ...auto, allowed: ["search"] } });
    await answer(chat, { tools: [weather, { ...search, parameters: { type: "object" } }] });
    const [first, second, allowed, changed] = engine.grammars;
    expect(second).toBe(first);
    expect(allowed?.text).not.toContain("get_weather");
    expect(changed?.text).toContain("get_weather");
    expect(changed?.text).not.toBe(first?.text);
  });

  it("are refused each time for what the engine does not take", async () => {
    const { engine, chat } = setUp(["Hi", "Hi"]);
    const compile = engine.compileGrammar.bind(engine);
    engine.compileGrammar = (source) =>
      source.text.includes('"dear"')
        ? Promise.reject(new FermataError("invalid_grammar", "too dear"))
        : compile(source);
    const parameters = { type: "object", properties: { dear: { type: "string" } } };
    const tools = [{ name: "pick", strict: true, parameters }];
    const refused = { code: "unsupported_schema", param: "tools" };
    await expect(answer(chat, { tools })).rejects.toMatchObject(refused);
    await expect(answer(chat, { tools })).rejects.toMatchObject(refused);
    await expect(answer(chat)).resolves.toBeUndefined();
  });

  it("are refused each time for a schema that is nested too deep", async () => {
    const { chat } = setUp([]);
    let parameters: Record<string, unknown> = { type: "object" };
    for (let depth = 0; depth < 100_000; depth++) parameters = { type: "object", not: parameters };
    const tools = [{ name: "pick", parameters }];
    const refused = { code: "schema_too_large", param: "tools" };
    await expect(answer(chat, { tools })).rejects.toMatchObject(refused);
    await expect(answer(chat, { tools })).rejects.toMatchObject(refused);
  });
});

describe("what no mask holds", () => {
  it("is found afterwards and told with the call", async () => {
    const good = await run([call("y")], { tools: [search], toolMode: "external" });
    expect(good.finish.calls[0]).not.toHaveProperty("problem");
    const bad = await run([call("Xy")], { tools: [search], toolMode: "external" });
    expect(bad.finish.calls[0]?.problem).toBe("/q must NOT be valid");
  });

  it("is an error for a strict tool", async () => {
    const strict = run([call("y")], { tools: [{ ...search, strict: true }], toolMode: "external" });
    await expect(strict).rejects.toMatchObject({
      code: "unsupported_schema",
      param: "tools",
      message: expect.stringMatching(/"search": At #\/properties\/q\/not the keyword "pattern"/u),
    });
  });

  it.each([
    ["<function=<parameter=<tool_call>", { minProperties: 1, additionalProperties: {} }, "minProp"],
    ["<|tool_call_start|>", { properties: { o: counted } }, "maxProp"],
    // What a property is called says nothing of its schema.
    [
      "<|tool_call_start|>",
      { properties: { const: { properties: { enum: counted } } } },
      "maxProp",
    ],
  ])("is an error for a strict tool where %s begins calls", async (marker, more, keyword) => {
    const { chat } = setUp(["Hi"], { template: `${chatml}{# ${marker} #}` });
    const parameters = { type: "object", ...more };
    const generate = async (strict: boolean): Promise<void> => {
      const tools = [{ name: "pick", strict, parameters }];
      for await (const _ of chat.generate(request({ tools, toolMode: "external" })));
    };
    await expect(generate(true)).rejects.toMatchObject({
      code: "unsupported_schema",
      param: "tools",
      message: expect.stringMatching(new RegExp(`"pick": the keyword "${keyword}`, "u")),
    });
    await expect(generate(false)).resolves.toBeUndefined();
  });

  const unheld = { type: "string", not: { pattern: "^\\p{Lu}" } };
  const format = { type: "json_schema", schema: unheld };
  const relax = "Send strict: false to have the value validated afterwards.";
  const leaveOut = "Send a schema without it.";
  const response_format = { type: "json_schema", json_schema: { schema: unheld, strict: true } };
  it.each<[field: string, document: DocumentFormat | undefined, remedy: string]>([
    ["response_format.json_schema.schema", documentOf({ response_format }), relax],
    ["guided_json", documentOf({ guided_json: unheld }), leaveOut],
    ["guided_json_schema", documentOf({ guided_json_schema: unheld }), leaveOut],
    ["output_config.format.schema", claudeDocumentOf({ format }), leaveOut],
  ])("is an error in %s, with what its client can do", async (field, document, remedy) => {
    const guidance = { ...auto, document };
    await expect(run(['"y"'], { tools: [], toolMode: "none", guidance })).rejects.toMatchObject({
      code: "unsupported_schema",
      param: field,
      message: expect.stringMatching(new RegExp(`so it cannot be enforced. ${remedy}$`, "u")),
    });
  });

  it("is found in a document too", async () => {
    const document = {
      kind: "json_schema",
      schema: { type: "string", not: { pattern: "^\\p{Lu}" } },
      strict: false,
      field: "response_format.json_schema.schema",
    } as const;
    const { finish } = await run(['"Xy"'], {
      tools: [],
      toolMode: "none",
      guidance: { ...auto, document },
    });
    expect(finish.problem).toBe("/ must NOT be valid");
  });
});

describe("an engine without masks", () => {
  it("leaves calls to the validation", async () => {
    const { engine, finish } = await run(
      [call("Xy")],
      { tools: [search], toolMode: "external" },
      true,
    );
    expect(engine.last.request.grammar).toBeUndefined();
    expect(finish.calls[0]?.problem).toBe("/q must NOT be valid");
  });

  it("refuses what needs them", async () => {
    const guidance: Guidance = { ...auto, toolChoice: "required" };
    const demanded = run(["Hi"], { tools: [search], toolMode: "external", guidance }, true);
    await expect(demanded).rejects.toMatchObject({
      code: "invalid_grammar",
      param: "tool_choice",
    });
  });
});
