// Tools that this program runs itself: weather, a calculator and a search.
//
//   npm start                                       in one terminal
//   npx tsx examples/typescript/tool-calling.ts     in another (Node 22.18 and newer: node …)
import OpenAI from "openai";
import type {
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from "openai/resources/chat/completions";
import { findServer } from "./find-server.ts";

const client = new OpenAI(await findServer("npm start"));
const maxRounds = 8;

const weather: Record<string, { temperature: number; condition: string }> = {
  Tokyo: { temperature: 19, condition: "rainy" },
  Paris: { temperature: 21, condition: "sunny" },
};
const pages = [{ words: "tool calling", title: "Tool calling explained" }];

type Arguments = Record<string, unknown>;

const functions: Record<string, (args: Arguments) => unknown> = {
  get_weather: ({ location }) =>
    weather[String(location)] ?? { temperature: 15, condition: "cloudy" },
  calculator: ({ expression }) => ({ value: calculate(String(expression)) }),
  web_search: ({ query }) => {
    const page = pages.find(({ words }) => String(query).toLowerCase().includes(words));
    return { title: page?.title ?? `Nothing about ${String(query)}`, url: "https://example.com" };
  },
};

const tools: ChatCompletionTool[] = [
  describe("get_weather", "Get weather for a location", "location", "City name"),
  describe("calculator", "Evaluate an arithmetic expression.", "expression", "The expression"),
  describe("web_search", "Search the web and return the best results.", "query", "Search terms"),
];

function describe(
  name: string,
  description: string,
  parameter: string,
  meaning: string,
): ChatCompletionTool {
  const properties = { [parameter]: { type: "string", description: meaning } };
  const parameters = { type: "object", properties, required: [parameter] };
  return { type: "function", function: { name, description, parameters } };
}

/** The four operations on numbers; never `eval` what a model wrote. */
function calculate(expression: string): number {
  const tokens = expression.match(/\d+(\.\d+)?|[-+*/()]/g) ?? [];
  let at = 0;
  const sum = (): number => {
    let value = product();
    while (tokens[at] === "+" || tokens[at] === "-")
      value = tokens[at++] === "+" ? value + product() : value - product();
    return value;
  };
  const product = (): number => {
    let value = factor();
    while (tokens[at] === "*" || tokens[at] === "/")
      value = tokens[at++] === "*" ? value * factor() : value / factor();
    return value;
  };
  const factor = (): number => {
    const token = tokens[at++];
    if (token === "-") return -factor();
    if (token !== "(") return Number(token);
    const value = sum();
    at++;
    return value;
  };
  const value = sum();
  if (Number.isNaN(value) || at < tokens.length) throw new Error(`cannot calculate ${expression}`);
  return value;
}

/** A failure goes to the model too: it may do better with the next call. */
function run(name: string, args: string): string {
  try {
    const result = functions[name]?.(JSON.parse(args) as Arguments);
    return JSON.stringify(result ?? { error: `There is no tool ${name}.` });
  } catch (error) {
    return JSON.stringify({ error: String(error) });
  }
}

async function ask(question: string): Promise<void> {
  console.log(`> ${question}`);
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
  for (let round = 0; round < maxRounds; round++) {
    const completion = await client.chat.completions.create({ model: "default", messages, tools });
    const message = completion.choices[0]!.message;
    messages.push(message);
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) {
      console.log(message.content);
      return;
    }
    // All calls of the round are answered before the next request.
    for (const call of calls) {
      if (call.type !== "function") continue;
      const content = run(call.function.name, call.function.arguments);
      console.log(`  ${call.function.name}(${call.function.arguments}) -> ${content}`);
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
}

const given = process.argv.slice(2);
const questions = [
  "What is the weather in Tokyo?",
  "Calculate 12 * 7",
  "Search the web for tool calling",
];
for (const question of given.length > 0 ? given : questions) await ask(question);
