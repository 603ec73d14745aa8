// Fermata as a library: an engine, a tool, and the loop that holds, runs and resumes. No server.
//
//   npm run setup && npx tsx examples/typescript/engine-api.ts
import { Chat, Engine, Tool, ToolParser, runToolLoop } from "fermata";

const weather = Tool.function("get_weather", "Get weather for a location")
  .param("location", "string", "City name", true)
  .param("unit", { type: "string", enum: ["celsius", "fahrenheit"] }, "Temperature unit", false)
  .run(({ location }) => {
    console.log(`[get_weather runs for ${String(location)}; the sequence is held]`);
    return { temperature: 19, condition: "rainy" };
  });

// Calls in a text that is there already.
const calls = new ToolParser().parse(
  'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"location": "Tokyo"}}\n</tool_call>',
);
for (const call of calls) console.log(`Parsed: ${call.name} with ${call.arguments}`);

const engine = await Engine.load({
  modelPath: process.argv[2] ?? "models/fermata-small.gguf",
  parallel: 1,
});
try {
  const chat = new Chat(engine);
  const request = {
    messages: [{ role: "user" as const, content: "What is the weather in Tokyo?" }],
    sampling: {
      temperature: 0,
      topK: 0,
      topP: 1,
      minP: 0,
      typicalP: 1,
      repeatPenalty: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      penaltyLastN: 64,
      seed: 0,
      logitBias: [],
    },
    stop: [],
    maxTokens: 256,
    owner: "example",
  };
  for await (const event of runToolLoop(chat, request, [weather])) {
    if (event.type === "content") process.stdout.write(event.text);
    else if (event.type === "hold")
      console.log(`[held with ${event.calls.length} call, ${engine.stats().held} sequence held]`);
    else if (event.type === "finish") {
      const { promptTokens, resumedTokens, prefilledTokens } = event.usage;
      const tokens = promptTokens + resumedTokens;
      console.log(`\n[read ${tokens} tokens, computed ${prefilledTokens} of them, each once]`);
    }
  }
} finally {
  await engine.close();
}
