// The texts of the agent load: seeded, so that every server reads the same.

const words = (
  "time year people way day man thing woman life child world school state family student group " +
  "country problem hand part place case week company system program question work number night " +
  "point home water room mother area money story fact month lot right study book eye job word " +
  "business issue side kind head house service friend father power hour game line end member law " +
  "car city community name president team minute idea body information back parent face level"
).split(" ");

/** `count` words, always the same for a seed. */
export function wordsFrom(seed, count) {
  let state = seed * 2654435761 + 1;
  const picked = [];
  for (let index = 0; index < count; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    picked.push(words[(state >>> 8) % words.length]);
  }
  return picked.join(" ");
}

const tool = (name, description, seed) => ({
  type: "function",
  function: {
    name,
    description: `${description} ${wordsFrom(seed, 60)}.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: wordsFrom(seed + 1, 12) },
        start_line: { type: "integer", description: wordsFrom(seed + 2, 12) },
        max_lines: { type: "integer", description: wordsFrom(seed + 3, 12) },
      },
      required: ["path"],
    },
  },
});

/** With the template's own text and `system`, a prefix of 1,500 tokens in Qwen's vocabulary. */
export const tools = [
  tool("read_file", "Read a part of a file.", 10),
  tool("list_folder", "List what a folder holds.", 20),
  tool("search_text", "Search the files of a folder.", 30),
  tool("run_query", "Run a query against the store.", 40),
];

export const system = `You are one of eight agents. ${wordsFrom(1, 648)}.`;

export function taskOf(agent) {
  return `You are agent ${agent}. ${wordsFrom(100 + agent, 30)}`;
}

/** What a tool returns, 160 tokens with the message around it. */
export function toolResult(agent, turn) {
  return `Tool result: ${wordsFrom(1000 + agent * 50 + turn, 147)}`;
}
