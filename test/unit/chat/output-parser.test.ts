import { describe, expect, it } from "vitest";

import type { OutputEvent } from "../../../src/chat/parser/text-parser.ts";
import { qwen } from "../../../src/chat/formats/formats.ts";
import { OutputParser } from "../../../src/chat/parser/output-parser.ts";
import type { OfferedTools } from "../../../src/chat/formats/readers/reader.ts";

const offered: OfferedTools = new Map([
  ["get_weather", {}],
  ["ping", {}],
]);

interface ParseOptions {
  cuts?: number[];
  natural?: boolean;
  reasoning?: "no" | "split" | "open";
  offered?: OfferedTools | null;
}

/** Events with neighbours joined, calls as `name(arguments)` and `!` where a call did not end. */
function parse(
  text: string,
  options: ParseOptions = {},
): { said: string; events: OutputEvent[]; parser: OutputParser } {
  let id = 0;
  const parser = new OutputParser({
    format: qwen,
    offered: options.offered === undefined ? offered : options.offered,
    reasoning: options.reasoning ?? "split",
    newCallId: () => `id${id++}`,
  });
  const events: OutputEvent[] = [];
  let from = 0;
  for (const cut of [...(options.cuts ?? []), text.length]) {
    events.push(...parser.push(text.slice(from, cut)));
    from = cut;
  }
  events.push(...parser.finish(options.natural ?? true));
  const joined: OutputEvent[] = [];
  for (const event of events) {
    const last = joined.at(-1);
    if (event.type === "call-arguments" && last?.type === "call-arguments")
      last.delta += event.delta;
    else if ((event.type === "content" || event.type === "reasoning") && last?.type === event.type)
      last.text += event.text;
    else joined.push({ ...event });
  }
  return { said: joined.map(describeEvent).join(" "), events: joined, parser };
}

function describeEvent(event: OutputEvent): string {
  switch (event.type) {
    case "content":
      return `C${JSON.stringify(event.text)}`;
    case "reasoning":
      return `R${JSON.stringify(event.text)}`;
    case "call-start":
      return `start${event.index}:${event.name}`;
    case "call-arguments":
      return `args${event.index}:${event.delta}`;
    case "call-end":
      return `end${event.index}`;
  }
}

const call = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
const asCall = (index: number, args = '{"city": "Rome"}'): string =>
  `start${index}:get_weather args${index}:${args} end${index}`;

const cases: [title: string, text: string, said: string, options?: ParseOptions][] = [
  ["plain text", "Hello\n\nworld \n", 'C"Hello\\n\\nworld \\n"'],
  ["a tagged call", `<tool_call>\n${call}\n</tool_call>`, asCall(0)],
  ["text and a call", `I look.\n<tool_call>${call}</tool_call>\n`, `C"I look." ${asCall(0)}`],
  [
    "two calls",
    `<tool_call>${call}</tool_call>\n \n<tool_call>\n${call}</tool_call>`,
    `${asCall(0)} ${asCall(1)}`,
  ],
  ["text after a call", `<tool_call>${call}</tool_call>\nDone`, `${asCall(0)} C"\\nDone"`],
  ["no arguments", '<tool_call>{"name":"ping"}</tool_call>', "start0:ping args0:{} end0"],
  [
    "empty arguments",
    '<tool_call>{"name":"ping","arguments":{}}</tool_call>',
    "start0:ping args0:{} end0",
  ],
  [
    "null arguments",
    '<tool_call>{"name":"ping","arguments":null}</tool_call>',
    "start0:ping args0:{} end0",
  ],
  [
    "parameters",
    '<tool_call>{"name":"ping","parameters":{"a":[1,-2.5e3,true]}}</tool_call>',
    'start0:ping args0:{"a":[1,-2.5e3,true]} end0',
  ],
  [
    "the name last",
    '<tool_call>{"arguments":{"a":1}, "name":"ping"}</tool_call>',
    'start0:ping args0:{"a":1} end0',
  ],
  [
    "arguments in a string",
    '<tool_call>{"name":"ping","arguments":"{\\"a\\":\\"\\u00e9\\"}"}</tool_call>',
    'start0:ping args0:{"a":"é"} end0',
  ],
  [
    "arguments that are no object",
    '<tool_call>{"name":"ping","arguments":[1, 2]}</tool_call>',
    "start0:ping args0:[1, 2] end0",
  ],
  [
    "a number as arguments",
    '<tool_call>{"name":"ping","arguments":12}</tool_call>',
    "start0:ping args0:12 end0",
  ],
  [
    "an unknown tool in tags",
    '<tool_call>{"name":"nope","arguments":{}}</tool_call>',
    "start0:nope args0:{} end0",
  ],
  [
    "a tag inside a string",
    '<tool_call>{"name":"ping","arguments":{"a":"</tool_call>"}}</tool_call>',
    'start0:ping args0:{"a":"</tool_call>"} end0',
  ],
  [
    "a raw line break in a string",
    '<tool_call>{"name":"ping","arguments":{"a":"x\ny"}}</tool_call>',
    'start0:ping args0:{"a":"x\\ny"} end0',
  ],
  ["a bracket too many", `<tool_call>${call}}</tool_call>`, asCall(0)],
  [
    "a missing bracket",
    '<tool_call>{"name":"ping","arguments":{"a":1}</tool_call>ok',
    'start0:ping args0:{"a":1} end0 C"ok"',
  ],
  ["a missing closing tag", `<tool_call>${call}`, asCall(0)],
  [
    "a missing closing tag before a call",
    `<tool_call>${call}\n<tool_call>${call}`,
    `${asCall(0)} ${asCall(1)}`,
  ],
  [
    "malformed arguments",
    '<tool_call>{"name":"ping","arguments":{bad}}</tool_call>',
    "start0:ping args0:{bad} end0",
  ],
  [
    "malformed arguments with brackets",
    '<tool_call>{"name":"ping","arguments":{a:{}} }\n</tool_call>',
    "start0:ping args0:{a:{}} end0",
  ],
  [
    "malformed before the name",
    "<tool_call>{nope}</tool_call> so",
    'C"<tool_call>{nope}</tool_call> so"',
  ],
  [
    "no JSON in tags",
    "<tool_call>get_weather</tool_call>",
    'C"<tool_call>get_weather</tool_call>"',
  ],
  ["an empty tag", "<tool_call></tool_call>", 'C"<tool_call></tool_call>"'],
  [
    "no name",
    '<tool_call>{"arguments":{}}</tool_call>',
    'C"<tool_call>{\\"arguments\\":{}}</tool_call>"',
  ],
  ["a tag that is not one", "a <tool_cal b <<tool_call>x", 'C"a <tool_cal b <<tool_call>x"'],
  ["a closing tag alone", "x</tool_call>", 'C"x</tool_call>"'],
  ["bare JSON", call, asCall(0)],
  // As the template of Qwen2.5-Coder shows a call.
  ["bare JSON in doubled brackets", `{${call}}`, asCall(0)],
  [
    "bare JSON in doubled brackets, one of them missing",
    `{${call}\nDone.`,
    `${asCall(0)} C"Done."`,
  ],
  ["bare JSON in trebled brackets", `{{${call}}}`, `C${JSON.stringify(`{{${call}}}`)}`],
  ["bare JSON on a line of its own", `Well:\n  ${call}\n`, `C"Well:" ${asCall(0)}`],
  ["bare JSON within a line", `Say ${call}`, `C${JSON.stringify(`Say ${call}`)}`],
  [
    "bare JSON of another tool",
    '{"name":"other","arguments":{}}',
    'C"{\\"name\\":\\"other\\",\\"arguments\\":{}}"',
  ],
  ["bare JSON without arguments", '{"name":"ping"}', 'C"{\\"name\\":\\"ping\\"}"'],
  [
    "bare JSON, arguments no object",
    '{"name":"ping","arguments":[]}',
    'C"{\\"name\\":\\"ping\\",\\"arguments\\":[]}"',
  ],
  [
    "other bare JSON",
    '{"answer": {"name": "ping", "arguments": {}}}',
    'C"{\\"answer\\": {\\"name\\": \\"ping\\", \\"arguments\\": {}}}"',
  ],
  ["bare JSON cut off", '{"name": "pi', 'C"{\\"name\\": \\"pi"'],
  [
    "refused JSON before a call",
    `{"a": 1\n<tool_call>${call}</tool_call>`,
    `C"{\\"a\\": 1" ${asCall(0)}`,
  ],
  ["a fence", `\`\`\`json\n${call}\n\`\`\``, asCall(0)],
  ["a fence on one line", `See:\n\`\`\`json ${call} \`\`\`\nok`, `C"See:" ${asCall(0)} C"\\nok"`],
  ["two calls in a fence", `\`\`\`json\n${call}\n${call}\n\`\`\``, `${asCall(0)} ${asCall(1)}`],
  [
    "a fence with other JSON",
    '```json\n{"a": 1}\n```\nend',
    'C"```json\\n{\\"a\\": 1}\\n```\\nend"',
  ],
  [
    "other JSON in a fence, then a call",
    `\`\`\`json\n{"a": 1}\n\`\`\`\n<tool_call>${call}</tool_call>`,
    `C"\`\`\`json\\n{\\"a\\": 1}\\n\`\`\`" ${asCall(0)}`,
  ],
  [
    "a tag in code",
    "```xml\n<tool_call>{}</tool_call>\n```",
    'C"```xml\\n<tool_call>{}</tool_call>\\n```"',
  ],
  [
    "a call after code",
    `\`\`\`py\nx\n\`\`\`\n<tool_call>${call}</tool_call>`,
    `C"\`\`\`py\\nx\\n\`\`\`" ${asCall(0)}`,
  ],
  ["inline ticks", "```x``` and ``y``", 'C"```x``` and ``y``"'],
  ["reasoning", "<think>\nWhy? \n</think>\n\nSo.", 'R"Why?" C"So."'],
  ["empty reasoning", "<think>\n\n</think>\n\nSo.", 'C"So."'],
  [
    "a call within reasoning",
    `<think>a ${call}\n<tool_call>${call}</tool_call></think>b`,
    `R${JSON.stringify(`a ${call}\n<tool_call>${call}</tool_call>`)} C"b"`,
  ],
  [
    "reasoning, then a call",
    `<think>x</think>\n<tool_call>${call}</tool_call>`,
    `R"x" ${asCall(0)}`,
  ],
  ["reasoning not closed", "<think>x </thi", 'R"x </thi"'],
  ["reasoning opened by the prompt", "x</think>y", 'R"x" C"y"', { reasoning: "open" }],
  ["a late reasoning tag", "a\n<think>b</think>c", 'C"a\\n" R"b" C"c"'],
  [
    "a late reasoning tag behind a call",
    `<tool_call>${call}</tool_call> <think>b</think>c`,
    `${asCall(0)} R"b" C"c"`,
  ],
  [
    "a closing tag behind a call",
    `<tool_call>${call}</tool_call></think>\nc`,
    `${asCall(0)} C"\\nc"`,
  ],
  ["a reasoning tag within a line", "a <think>b</think>c", 'C"a <think>b</think>c"'],
  [
    "a reasoning tag in code without calls",
    "~~~\n<think>b</think>\n~~~ \n<think>c</think>d",
    'C"~~~\\n<think>b</think>\\n~~~ \\n" R"c" C"d"',
    { offered: null },
  ],
  [
    "a reasoning tag in code with a fence that is no end",
    "````\n```\n<think>b\n~~~~\n<think>",
    'C"````\\n```\\n<think>b\\n~~~~\\n<think>"',
  ],
  ["a tag that is spoken of", "the `<think>` tag", 'C"the `<think>` tag"'],
  [
    "reasoning unknown to the model",
    "<think>b</think>",
    'C"<think>b</think>"',
    { reasoning: "no" },
  ],
  [
    "nothing looked for",
    `<think>x</think>${call}<tool_call>${call}</tool_call> \n`,
    `R"x" C${JSON.stringify(`${call}<tool_call>${call}</tool_call> \n`)}`,
    { offered: null },
  ],
  [
    "cut inside arguments",
    '<tool_call>{"name":"ping","arguments":{"a":"x',
    'start0:ping args0:{"a":"x',
    { natural: false },
  ],
  [
    "cut inside arguments before a tag's end",
    '<tool_call>{"name":"ping","arguments":{"a":1,</tool',
    'start0:ping args0:{"a":1,</tool',
    { natural: false },
  ],
  [
    "cut after complete arguments",
    '<tool_call>{"name":"ping","arguments":{"a":1}',
    'start0:ping args0:{"a":1} end0',
    { natural: false },
  ],
  ["cut inside the name", '<tool_call>{"name":"pi', "", { natural: false }],
  ["cut inside the opening marker", "<tool", "", { natural: false }],
  ["cut inside an opening marker behind text", "a <tool", 'C"a <tool"', { natural: false }],
  ["ended inside the opening marker", "<tool", 'C"<tool"'],
  [
    "ended inside arguments",
    '<tool_call>{"name":"ping","arguments":{"a":"x',
    'start0:ping args0:{"a":"x end0',
  ],
  [
    "emoji",
    `😀\n<tool_call>{"name":"ping","arguments":{"a":"😀"}}</tool_call>`,
    'C"😀" start0:ping args0:{"a":"😀"} end0',
  ],
];

describe("OutputParser", () => {
  it.each(cases)("%s", (_title, text, said, options) => {
    expect(parse(text, options).said).toBe(said);
  });

  it.each(cases)("does not depend on how the text is cut: %s", (_title, text, said, options) => {
    const all = Array.from({ length: text.length }, (_, index) => index);
    expect(parse(text, { ...options, cuts: all }).said).toBe(said);
    for (const cut of all) expect(parse(text, { ...options, cuts: [cut] }).said).toBe(said);
    let state = 7;
    for (let run = 0; run < 20; run++) {
      const cuts = all.filter(() => (state = (state * 48271) % 2147483647) % 4 === 0);
      expect(parse(text, { ...options, cuts }).said).toBe(said);
    }
  });

  it("streams arguments as they come, and text once it cannot be a marker", () => {
    const parser = new OutputParser({
      format: qwen,
      offered,
      reasoning: "split",
      newCallId: () => "id",
    });
    expect(parser.push("Hi <")).toEqual([{ type: "content", text: "Hi" }]);
    expect(parser.push("b")).toEqual([{ type: "content", text: " <b" }]);
    expect(parser.push('<tool_call>{"name":"ping","arguments":')).toEqual([]);
    expect(parser.push('{"a"')).toEqual([
      { type: "call-start", index: 0, id: "id", name: "ping" },
      { type: "call-arguments", index: 0, delta: '{"a"' },
    ]);
    expect(parser.inCall).toBe(true);
    expect(parser.push(":1}")).toEqual([
      { type: "call-arguments", index: 0, delta: ":1}" },
      { type: "call-end", index: 0, call: { id: "id", name: "ping", arguments: '{"a":1}' } },
    ]);
    expect(parser.push("}</tool_call>")).toEqual([]);
    expect(parser.inCall).toBe(false);
    expect(parser.finish(true)).toEqual([]);
  });

  it("makes ids of 24 letters and digits", () => {
    const parser = new OutputParser({ format: qwen, offered, reasoning: "no" });
    parser.push(`<tool_call>${call}</tool_call><tool_call>${call}</tool_call>`);
    const ids = parser.calls.map(({ id }) => id);
    expect(ids[0]).toMatch(/^call_[A-Za-z0-9]{24}$/u);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it("takes a long text in linear time", () => {
    const text = `{"name": "ping", "arguments": {"a": "${"x<`{\\n ".repeat(60_000)}"}}`;
    const before = process.cpuUsage();
    const { parser } = parse(
      `<tool_call>${text}</tool_call>\n\`\`\`json\n{"name":"${"y".repeat(300_000)}"}\n\`\`\`\n${"<tool_cal ".repeat(30_000)}`,
    );
    expect(parser.calls).toHaveLength(1);
    // In quadratic time it would take minutes.
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1e6).toBeLessThan(20);
  });
});
