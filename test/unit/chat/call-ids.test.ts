import { describe, expect, it } from "vitest";
import { Chat } from "../../../src/chat/chat.ts";
import type { ChatMessage } from "../../../src/chat/types.ts";
import { request, run, setUp, weather } from "./chat-fixtures.ts";

/** As Kimi K2's own: a call is its id. */
const kimi = `{% if tools %}<|im_system|>{{ tools | tojson }}<|im_end|>{% endif %}{% for message in messages %}<|im_{{ message.role }}|>{{ message.get('name') or message.role }}:
{%- if message.role == 'tool' %}## Return of {{ message.tool_call_id }}
{{ message.content }}
{%- else %}{{ message.content }}{% endif %}
{%- if message.tool_calls %}<|tool_calls_section_begin|>
{%- for call in message.tool_calls %}<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>{{ call.function.arguments | tojson }}<|tool_call_end|>{% endfor -%}
<|tool_calls_section_end|>{% endif %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_assistant|>assistant:{% endif %}`;

const call = (id: string, name: string) => ({ id, name, arguments: "{}" });
const calls = (...toolCalls: ReturnType<typeof call>[]): ChatMessage => ({
  role: "assistant",
  content: "",
  toolCalls,
});
const result = (toolCallId: string): ChatMessage => ({ role: "tool", toolCallId, content: "ok" });
const user: ChatMessage = { role: "user", content: "Hi" };

async function idsIn(messages: ChatMessage[]): Promise<string[]> {
  const { engine } = setUp([], { template: kimi });
  const text = await new Chat(engine).promptText({ messages, tools: [weather] });
  return [...text.matchAll(/(?:tool_call_begin\|>|Return of )([^<\s]+)[<\s]/gu)].map(
    ([, id]) => id!,
  );
}

describe("a template that shows a call's id and not its name", () => {
  it("is given ids with the name and a number, counted over the conversation", async () => {
    const messages = [
      user,
      calls(call("call_a", "get_weather"), call("call_b", "get_time")),
      result("call_b"),
      result("call_a"),
      user,
      calls(call("call_a", "get_weather")),
      result("call_a"),
    ];
    expect(await idsIn(messages)).toEqual([
      "functions.get_weather:0",
      "functions.get_time:1",
      "functions.get_weather:0",
      "functions.get_time:1",
      "functions.get_weather:2",
      "functions.get_weather:2",
    ]);
  });

  it("keeps a client's own of this form", async () => {
    const own = "functions.get_time:7";
    expect(await idsIn([user, calls(call(own, "get_time")), result(own)])).toEqual([own, own]);
    const other = await idsIn([user, calls(call(own, "get_weather")), result(own)]);
    expect(other).toEqual(["functions.get_weather:0", "functions.get_weather:0"]);
  });

  it("has the id of a held call in its result", async () => {
    const round = `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>`;
    const { engine, chat } = setUp([round, "Sunny."], { template: kimi });
    await run(chat, request(), [["sunny"]]);
    const { resumes } = engine.last;
    expect(engine.spell(resumes[0]!.tokens)).toContain(
      "## Return of functions.get_weather:0\nsunny",
    );
  });
});
