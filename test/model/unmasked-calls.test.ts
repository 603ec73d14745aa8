// A call that the parser takes and no mask held is known as such, so it is validated: on a real vocabulary.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formats } from "../../src/chat/formats/formats.ts";
import { writeCalls } from "../../src/chat/formats/write-calls.ts";
import { OutputParser } from "../../src/chat/parser/output-parser.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar } from "../../src/engine/types.ts";
import { makeConstraints } from "../support/constraints.ts";
import { loadTestEngine } from "../support/engine.ts";
import { tools } from "../support/format-tools.ts";
import { hasMasks } from "../support/masks.ts";

let engine: Engine;

beforeAll(async () => {
  engine = await loadTestEngine();
});
afterAll(async () => {
  await engine.close();
});

const inJson = formats.filter(({ syntax }) => syntax.argumentStyle.style === "json");

describe.skipIf(!hasMasks).each(inJson)("$name", (format) => {
  const { name, syntax, reasoning } = format;
  const offered = new Map(tools.map((tool) => [tool.name, tool.parameters]));
  let grammar: Grammar;

  beforeAll(async () => {
    const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false } as const;
    const options = { syntax, markers: reasoning, controls: [], tools, guidance };
    grammar = await engine.compileGrammar((await makeConstraints(options)).round(0, "split")!);
  });

  const file = new URL(`../fixtures/outputs/${name}.json`, import.meta.url);
  const recorded = (JSON.parse(readFileSync(file, "utf8")) as { text: string }[]).map(
    ({ text }) => text,
  );
  const own = writeCalls(syntax, [["get_weather", { city: "Rome" }]]);
  const bare = '{"name": "get_weather", "arguments": {"city": "Rome"}}';
  const forms = [own, bare, bare.replace("arguments", "parameters"), `${own}\n${bare}`, bare + own];
  const placed = [
    (call: string) => call,
    (call: string) => `I look.\n${call}`,
    (call: string) => `I look. ${call}`,
    (call: string) => `\`\`\`json\n${call}\n\`\`\``,
    (call: string) => `\`\`\`json ${call}\`\`\``,
    (call: string) => `\`\`\`python\n${call}\n\`\`\`\n${call}`,
    (call: string) => `\`\`\`json {"a": 1}\n${call}\n\`\`\``,
    (call: string) => `\`\`\` python\n${call}\n\`\`\``,
    (call: string) => `\`\`\`json ${bare}\nI look.\n${call}\n\`\`\``,
    (call: string) => `{"id": "\n\`\`\`js\n", "no": 1}\n${call}\n\`\`\``,
    (call: string) => `I look.\n${reasoning.open}So.${reasoning.close}${call}`,
    (call: string) => `[${call}]`,
    (call: string) => `${format.callOpen}${call}${format.callClose}`,
    (call: string) => `${format.callOpen}\n${call}\n${format.callClose}`,
    (call: string) => `${reasoning.open}So.${call}`,
    (call: string) => `${reasoning.open}So.${reasoning.close}${call}`,
    (call: string) => `${reasoning.open}${bare}${call}\n${own}`,
  ];
  const spelled = [
    (call: string) => call,
    (call: string) => call.replaceAll(": ", ":"),
    (call: string) => call.replaceAll('{"', '{ "'),
    (call: string) => call.replaceAll("[", "[ "),
    (call: string) => call.replaceAll("\n", ""),
    (call: string) => call.replaceAll('{"name"', '{"type": "function", "name"'),
    (call: string) => call.replaceAll("get_weather", "get_\\u0077eather"),
  ];
  const written = forms.flatMap((form) => placed.map((place) => place(form)));
  const texts = [...recorded, ...written].flatMap((text) => spelled.map((spell) => spell(text)));

  it("knows each call that the grammar let through with wrong arguments", async () => {
    let found = 0;
    for (const text of new Set(texts)) {
      const wrong = text.replaceAll('"Rome"', "5");
      const parser = new OutputParser({ format, offered, reasoning: "split" });
      parser.push(wrong);
      parser.finish(true);
      const bad = parser.calls.filter((call) => call.arguments.includes("5}"));
      if (bad.length === 0 || !grammar.check(await engine.tokenize(wrong)).complete) continue;
      found += bad.length;
      for (const call of bad) expect(parser.isGuided(call), wrong).toBe(false);
    }
    if (Object.keys(format.bareCalls).length > 0) expect(found).toBeGreaterThan(0);
  });
});
