/** The requests of each case: [method, path, body]. `call` sends one beforehand. */

const mebibytes = 2 ** 20;
const items = 10_000;

const chat = (fields) => Buffer.from(JSON.stringify({ max_tokens: 4, ...fields }));
const user = (content) => ({ role: "user", content });
const turns = (count) =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `This is what was said in turn ${index}, and it is short.`,
  }));

const tokens = (count) => Array.from({ length: count }, (_, index) => 100 + (index % 500));

function bodyOf(size, piece) {
  const count = Math.floor((size * mebibytes) / Buffer.byteLength(`${piece},`)) - 100;
  const text = `{"model":"x","messages":[{"role":"user","content":"Hi"}],"metadata":[${`${piece},`.repeat(count)}0]}`;
  return ["POST", "/v1/chat/completions", Buffer.from(text)];
}

const tool = (index, salt) => ({
  type: "function",
  function: {
    name: `tool_${index}`,
    description: `Does what number ${index} does, ${salt}.`,
    parameters: {
      type: "object",
      required: ["path"],
      properties: {
        path: { type: "string", description: "A path" },
        mode: { enum: ["read", "write", `mode_${salt}`] },
        options: {
          type: "object",
          properties: {
            depth: { type: "integer", minimum: 0, maximum: 100 + index },
            names: { type: "array", items: { type: "string", maxLength: 40 } },
            pick: { oneOf: [{ type: "number" }, { type: "string", pattern: "^[a-z]+$" }] },
          },
        },
      },
    },
  },
});

/** Of which 60 fit the shipped model's context. */
const shortTool = (index, salt) => ({
  type: "function",
  function: {
    name: `tool_${index}`,
    description: `Number ${index}`,
    parameters: {
      type: "object",
      required: ["path"],
      properties: {
        path: { type: "string", maxLength: 40 + index },
        mode: { enum: ["read", `mode_${salt}`] },
        names: { type: "array", items: { pattern: "^[a-z]+$" } },
      },
    },
  },
});

function toolRequests(make) {
  return [1, 2, 3].map((salt) => [
    "POST",
    "/v1/chat/completions",
    chat({
      messages: [user("Hi")],
      tool_choice: "required",
      tools: Array.from({ length: 60 }, (_, index) => make(index, `${salt}${Date.now()}`)),
    }),
  ]);
}

async function conversation(call) {
  const { text } = await call("POST", "/v1/conversations", {});
  const { id } = JSON.parse(text);
  for (let start = 0; start < items; start += 20) {
    const messages = turns(20).map((item, index) => ({
      ...item,
      content: `${item.content} ${start + index}`,
    }));
    await call("POST", `/v1/conversations/${id}/items`, { items: messages });
  }
  return id;
}

async function longResponse(call) {
  const { text } = await call("POST", "/v1/responses", {
    input: turns(items),
    max_output_tokens: 16,
    truncation: "auto",
  });
  return JSON.parse(text).id;
}

export const cases = {
  nothing: async () => [],
  "32 MiB, one text": async () => [
    ["POST", "/v1/chat/completions", chat({ messages: [user("a ".repeat(15.9 * mebibytes))] })],
  ],
  "32 MiB, small values": async () => [bodyOf(32, '{"a":[1]}')],
  "4 MiB, one text": async () => [
    ["POST", "/v1/chat/completions", chat({ messages: [user("a ".repeat(1.95 * mebibytes))] })],
  ],
  "4 MiB, small values": async () => [bodyOf(4, '{"a":[1]}')],
  "4 MiB, brackets": async () => [bodyOf(4, "[]")],
  "10,000 messages": async () => [
    ["POST", "/v1/chat/completions", chat({ messages: turns(items) })],
  ],
  "10,000 items": async () => [
    ["POST", "/v1/responses", { input: turns(items), max_output_tokens: 16, truncation: "auto" }],
  ],
  "stored conversation of 10,000": async (call) => {
    const id = await conversation(call);
    return [
      ["GET", `/v1/conversations/${id}/items?limit=100`],
      ["POST", `/v1/conversations/${id}/items`, { items: turns(20) }],
      [
        "POST",
        "/v1/responses",
        { input: "And now?", conversation: id, max_output_tokens: 16, truncation: "auto" },
      ],
    ];
  },
  "stored response of 10,000": async (call) => {
    const id = await longResponse(call);
    return [
      ["GET", `/v1/responses/${id}/input_items?limit=100`],
      [
        "POST",
        "/v1/responses",
        { input: "And now?", previous_response_id: id, max_output_tokens: 16, truncation: "auto" },
      ],
    ];
  },
  "10,000 messages, Anthropic": async () => [
    ["POST", "/v1/messages", chat({ messages: turns(items - 1) })],
  ],
  "10,000 messages, Ollama": async () => [
    ["POST", "/api/chat", chat({ messages: turns(items - 1), stream: false })],
  ],
  "4 MiB, bare prompt": async () => [
    ["POST", "/v1/completions", chat({ prompt: "a ".repeat(1.95 * mebibytes) })],
    ["POST", "/tokenize", chat({ content: "a ".repeat(1.95 * mebibytes) })],
  ],
  "190,000 tokens": async () => [
    ["POST", "/v1/completions", chat({ prompt: tokens(190_000) })],
    ["POST", "/detokenize", chat({ tokens: tokens(190_000) })],
  ],
  "60 tools": async () => toolRequests(shortTool),
  "60 tools, too long": async () => toolRequests(tool),
};

export const caseNames = Object.keys(cases);
