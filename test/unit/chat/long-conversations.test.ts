// Long conversations are rendered in parts: other streams go on meanwhile, and the text is the same.
import { expect, test } from "vitest";
import type { ChatMessage } from "../../../src/chat/types.ts";
import { finish, finishInTurns } from "../../../src/parts.ts";
import { JinjaTemplate } from "../../../src/chat/template/jinja/jinja-template.ts";
import { request, run, setUp } from "./chat-fixtures.ts";

const count = 5000;
const messages = Array.from({ length: count }, (_, index): ChatMessage => ({
  role: index % 2 === 0 ? "user" : "assistant",
  content: `Turn ${index}.`,
})).concat({ role: "user", content: "And now?" });

/** Turns of the event loop that others have while `work` is done. */
async function turnsDuring<Result>(work: Promise<Result>): Promise<[Result, number]> {
  let turns = 0;
  let isDone = false;
  const tick = (): void => {
    turns += 1;
    if (!isDone) setImmediate(tick);
  };
  tick();
  const result = await work;
  isDone = true;
  return [result, turns];
}

test("others have their turn while a long conversation is rendered", async () => {
  const { chat } = setUp([], { contextSize: 1_000_000 });
  const [text, turns] = await turnsDuring(chat.promptText({ messages, tools: [] }));
  const written = messages.map(
    ({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`,
  );
  expect(text).toBe(`${written.join("")}<|im_start|>assistant\n`);
  // Each turn of the work takes 8 ms; here it takes no fewer than 30.
  expect(turns).toBeGreaterThan(3);
});

test("others have their turn while a long conversation returns", async () => {
  const { chat } = setUp(["Yes.", "No."], { contextSize: 1_000_000 });
  const { content } = await run(chat, request({ messages, tools: [] }));
  const answer: ChatMessage = { role: "assistant", content };
  const next = [...messages, answer, { role: "user" as const, content: "Sure?" }];
  const [, turns] = await turnsDuring(run(chat, request({ messages: next, tools: [] })));
  expect(chat.counters.splices).toBe(1);
  expect(turns).toBeGreaterThan(6);
});

test.each([
  ["nested", "{% for m in l %}{% for c in m %}{{ c }}{% endfor %};{% endfor %}"],
  ["in a condition", "{% if l %}{% for m in l %}{{ loop.index }}{{ m }}{% endfor %}{% endif %}"],
  [
    "filtered",
    "{% for m in l if m != 'b' %}{{ loop.index0 }}/{{ loop.length }}{{ m }}{% endfor %}",
  ],
  ["left", "{% for m in l %}{{ m }}{% if m == 'b' %}{% break %}{% endif %}{% endfor %}"],
  ["skipped", "{% for m in l %}{% if m == 'b' %}{% continue %}{% endif %}{{ m }}{% endfor %}"],
  ["empty", "{% for m in none_here %}{{ m }}{% else %}nothing{% endfor %}"],
  ["unpacked", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}"],
  ["neighbours", "{% for m in l %}{{ loop.previtem }}<{{ m }}<{{ loop.nextitem }} {% endfor %}"],
  ["of letters", "{% for c in 'xyz' %}{{ c }}-{% endfor %}"],
  ["of keys", "{% for k in d %}{{ k }}{{ loop.last }}{% endfor %}"],
  ["in a macro", "{% macro f(x) %}{% for m in x %}[{{ m }}]{% endfor %}{% endmacro %}{{ f(l) }}"],
  ["in a set", "{% set x %}{% for m in l %}{{ m }}{% endfor %}{% endset %}{{ x | upper }}"],
  [
    "scoped",
    "{% set n = namespace(i=0) %}{% set x = 1 %}{% for m in l %}{% set x = 2 %}{% set n.i = n.i + x %}{% endfor %}{{ x }}{{ n.i }}",
  ],
])("a loop is the same in parts and at once: %s", async (title, source) => {
  const variables = { l: ["a", "b", "c"], d: { one: 1, two: 2 } };
  const expected: Record<string, string> = {
    nested: "a;b;c;",
    "in a condition": "1a2b3c",
    filtered: "0/2a1/2c",
    left: "ab",
    skipped: "ac",
    empty: "nothing",
    unpacked: "one=1;two=2;",
    neighbours: "<a<b a<b<c b<c< ",
    "of letters": "x-y-z-",
    "of keys": "oneFalsetwoTrue",
    "in a macro": "[a][b][c]",
    "in a set": "ABC",
    scoped: "16",
  };
  const template = new JinjaTemplate(source);
  expect(finish(template.renderInParts(variables))).toBe(expected[title]);
  expect(await finishInTurns(template.renderInParts(variables))).toBe(expected[title]);
});
