// A last message of the assistant's is the beginning of the answer, as with llama-server and vLLM.
import { describe, expect, test } from "vitest";
import { createWorld, finish } from "./fake-services.ts";

const user = { role: "user", content: "Weather?" };
const begun = { role: "assistant", content: "It is" };
const call = {
  role: "assistant",
  tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
};

function post(world: ReturnType<typeof createWorld>, url: string, payload: object) {
  return world.app.inject({ method: "POST", url, payload });
}

async function prompted(payload: object) {
  const world = createWorld();
  world.chat.script = [{ type: "content", text: " fine." }, finish("stop")];
  const response = await post(world, "/v1/chat/completions", payload);
  const { error, choices } = response.json();
  const { messages, prefill, openTurn } = world.chat.requests[0] ?? {};
  return { error, status: response.statusCode, choices, read: { messages, prefill, openTurn } };
}

describe("chat completions", () => {
  test.each([
    ["by itself", {}],
    ["when asked to", { continue_final_message: true }],
    [
      "as vLLM and transformers are asked",
      { continue_final_message: true, add_generation_prompt: false },
    ],
    ["whatever is said of the next turn", { add_generation_prompt: true }],
  ])("go on with the assistant's last message: %s", async (_title, fields) => {
    const { status, choices, read } = await prompted({ messages: [user, begun], ...fields });
    expect(status).toBe(200);
    expect(read).toEqual({ messages: [user], prefill: "It is", openTurn: true });
    // What is new alone.
    expect(choices[0].message.content).toBe(" fine.");
  });

  const thought = { ...begun, reasoning_content: "Hm." };
  const added = { role: "assistant", content: "It is" };
  test.each([
    ["told not to", [user, begun], { continue_final_message: false }, [user, added], true],
    ["calls", [user, call], {}, [user, { toolCalls: [{ id: "c" }] }], true],
    ["nothing was said", [user, { role: "assistant", content: "" }], {}, [user], true],
    ["two are the assistant's", [user, begun, begun], {}, [user, added, added], true],
    ["there is no question", [begun], {}, [added], true],
    ["there is reasoning", [user, thought], {}, [user, { ...added, reasoning: "Hm." }], true],
    [
      "a document is asked for",
      [user, begun],
      { response_format: { type: "json_object" } },
      [user, added],
      true,
    ],
    ["the last is the user's", [user], {}, [user], true],
    ["no turn is to be opened", [user], { add_generation_prompt: false }, [user], false],
    [
      "a turn that is over, and no other",
      [user, begun],
      { continue_final_message: false, add_generation_prompt: false },
      [user, added],
      false,
    ],
  ])("do not where %s", async (_title, messages, fields, expected, openTurn) => {
    const { status, read } = await prompted({ messages, ...fields });
    expect(status).toBe(200);
    expect(read).toMatchObject({ messages: expected, prefill: "", openTurn });
    expect(read.messages).toHaveLength(expected.length);
  });

  const both = { continue_final_message: true, add_generation_prompt: true };
  test.each([
    ["continue_final_message", { messages: [user, begun], ...both }],
    ["continue_final_message", { messages: [user], continue_final_message: true }],
    ["continue_final_message", { messages: [user, call], continue_final_message: true }],
    ["continue_final_message", { messages: [user, begun], continue_final_message: "yes" }],
    ["add_generation_prompt", { messages: [user], add_generation_prompt: 1 }],
    ["continue_final_message", { messages: [user, begun, begun], continue_final_message: true }],
    ["continue_final_message", { messages: [begun], continue_final_message: true }],
    ["continue_final_message", { messages: [user, thought], continue_final_message: true }],
    [
      "continue_final_message",
      {
        messages: [user, begun],
        response_format: { type: "json_object" },
        continue_final_message: true,
      },
    ],
  ])("refuse, by %s, %j", async (param, payload) => {
    const { status, error } = await prompted(payload);
    expect(status).toBe(400);
    expect(error.param).toBe(param);
    expect(error.message).toMatch(/\. (?:Send|Leave|Let) .*\.$/u);
  });
});

test("/apply-template shows the prompt that is continued", async () => {
  const world = createWorld();
  const prompt = async (payload: object): Promise<string> =>
    (await post(world, "/apply-template", payload)).json().prompt;
  expect(await prompt({ messages: [user, begun] })).toBe("[user]Weather?+It is");
  expect(await prompt({ messages: [user, begun], continue_final_message: false })).toBe(
    "[user]Weather?[assistant]It is",
  );
  expect(await prompt({ messages: [user], add_generation_prompt: false })).toBe(
    "[user]Weather?, closed",
  );
});
