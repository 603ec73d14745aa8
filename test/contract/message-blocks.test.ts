/** What the model reads of content that is no text, and of documents. */

import { pino } from "pino";
import { expect, test } from "vitest";
import { createWorld } from "./fake-services.ts";

const line = "[an image, which the model cannot see]";
const pixel = "iVBORw0KGgo=";
const base64 = { type: "base64", media_type: "image/png", data: pixel };
const showPicture = { name: "screenshot", arguments: {} };

function messages(...content: object[]) {
  return {
    messages: [
      { role: "user", content: "Look." },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content }] },
    ],
  };
}

function chat(content: unknown) {
  const call = { id: "t1", type: "function", function: { name: "look", arguments: "{}" } };
  return {
    messages: [
      { role: "user", content: "Look." },
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "t1", content },
    ],
  };
}

const ollama = {
  messages: [
    { role: "user", content: "Look." },
    { role: "assistant", tool_calls: [{ function: showPicture }] },
    { role: "tool", tool_name: "screenshot", content: "Done.", images: [pixel] },
  ],
};

async function send(url: string, payload: object) {
  const lines: { level: number; field?: string }[] = [];
  const logger = pino({}, { write: (text: string) => void lines.push(JSON.parse(text)) });
  const world = createWorld({ config: { logger } });
  const reply = await world.app.inject({ method: "POST", url, payload });
  const warned = lines.flatMap(({ level, field }) => (level === 40 ? [field] : []));
  return { reply, warned, read: world.chat.requests[0]?.messages.at(-1)?.content };
}

const done = { type: "text", text: "Done." };
const image = { type: "image", source: base64 };
const pdf = {
  type: "document",
  title: "Plan",
  source: { ...base64, media_type: "application/pdf" },
};

test.each([
  [
    "/v1/messages",
    messages(done, image),
    "Done.\n[an image (image/png), which the model cannot see]",
    "messages[].content[].content[]",
  ],
  ["/v1/messages", messages({ type: "image" }), line, "messages[].content[].content[]"],
  [
    "/v1/messages",
    messages(pdf),
    "Plan\n[a document, which the model cannot see]",
    "messages[].content[].content[].source.type=base64",
  ],
  [
    "/v1/chat/completions",
    chat([done, { type: "image_url", image_url: { url: "data:" } }]),
    `Done.\n${line}`,
    "messages[].content[]",
  ],
  ["/api/chat", ollama, `Done.\n${line}`, "messages[].images[]"],
])("%s: a tool's result with an image or a file: %#", async (url, body, read, field) => {
  const answered = await send(url, body);
  expect(answered.reply.statusCode).toBe(200);
  expect(answered.read).toBe(read);
  expect(answered.warned).toContain(field);
});

test("an image of the user's own is refused", async () => {
  const own = [{ role: "user", content: [image] }];
  const { reply } = await send("/v1/messages", { messages: own });
  expect(reply.statusCode).toBe(400);
  expect(reply.json().error).toMatchObject({ code: "image_not_supported" });
});

const document = (rest: object) => ({
  messages: [{ role: "user", content: [{ type: "document", ...rest }] }],
});
const plain = { type: "text", media_type: "text/plain", data: "It rains." };

test.each([
  [{ source: plain, title: "Weather", context: "Of today." }, "Weather\nOf today.\nIt rains."],
  [{ source: plain, title: null }, "It rains."],
  [{ source: { type: "content", content: "It rains." } }, "It rains."],
  [
    {
      title: "Weather",
      source: { type: "content", content: [done, { ...done, text: "It rains." }] },
    },
    "Weather\nDone.\nIt rains.",
  ],
])("a document is read whole: %#", async (rest, read) => {
  const answered = await send("/v1/messages", document(rest));
  expect(answered.reply.statusCode).toBe(200);
  expect(answered.read).toBe(read);
});

test("an image in a document of the user's own is refused", async () => {
  const source = { type: "content", content: [image] };
  const { reply } = await send("/v1/messages", document({ source }));
  expect(reply.json().error.param).toBe("messages[0].content[0].source.content[0].type");
});
