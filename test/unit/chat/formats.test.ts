/** Each format's outputs, as its models write them, cut at every byte. One file in test/fixtures/outputs a format. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import type { OutputEvent } from "../../../src/chat/parser/text-parser.ts";
import type { ToolCallFormat } from "../../../src/chat/formats/format.ts";
import { formats } from "../../../src/chat/formats/formats.ts";
import { OutputParser } from "../../../src/chat/parser/output-parser.ts";
import type { JsonSchema } from "../../../src/chat/types.ts";
import { Detokenizer } from "../../../src/engine/generation.ts";
import {
  type ChatCompletionChunk,
  ChunkStream,
} from "../../../src/server/chat-completions/chunks.ts";
import { writeCalls } from "../../../src/chat/formats/write-calls.ts";

interface Case {
  title: string;
  text: string;
  content: string;
  reasoning: string;
  calls: [name: string, args: string][];
  /** Calls that were begun and did not end. */
  open?: [name: string, args: string][];
  /** The token limit cut the text. */
  cut?: boolean;
}

const text = { type: "string" };
const properties: Record<string, JsonSchema> = {
  get_weather: { city: text, unit: text, days: { type: "integer" } },
  book_table: {
    when: { type: "object" },
    guests: { type: "array", items: text },
    confirmed: { type: "boolean" },
    notes: { type: ["string", "null"] },
  },
  write_file: { path: text, content: text },
  ping: {},
};
const offered = new Map(
  Object.entries(properties).map(([name, own]) => [name, { type: "object", properties: own }]),
);

function readCases(format: ToolCallFormat): Case[] {
  const file = join(import.meta.dirname, `../../fixtures/outputs/${format.name}.json`);
  return JSON.parse(readFileSync(file, "utf8")) as Case[];
}

function parse(
  format: ToolCallFormat,
  pieces: readonly Uint8Array[],
  isCut: boolean,
): OutputEvent[] {
  let id = 0;
  const parser = new OutputParser({
    format,
    offered,
    reasoning: "split",
    newCallId: () => `call_${id++}`,
  });
  const detokenizer = new Detokenizer();
  const events = pieces.flatMap((piece) => parser.push(detokenizer.push(piece)));
  return [...events, ...parser.finish(!isCut)];
}

interface Message {
  content: string;
  reasoning: string;
  calls: [string, string][];
  open: [string, string][];
}

/** What a client makes of the chunks, by OpenAI's rules; anything it could not know is an error. */
function accumulate(chunks: readonly ChatCompletionChunk[]): Message {
  const message: Message = { content: "", reasoning: "", calls: [], open: [] };
  for (const { choices } of chunks) {
    const delta = choices[0]?.delta ?? {};
    message.content += delta.content ?? "";
    message.reasoning += delta.reasoning_content ?? "";
    for (const call of delta.tool_calls ?? []) {
      const known = message.calls[call.index];
      const told = call.function!;
      if (known === undefined) {
        expect(call).toEqual({
          index: message.calls.length,
          id: `call_${call.index}`,
          type: "function",
          function: { name: told.name, arguments: "" },
        });
        message.calls.push([told.name ?? "", ""]);
      } else {
        expect(call).toEqual({ index: message.calls.length - 1, function: told });
        expect(Object.keys(told)).toEqual(["arguments"]);
        expect(told.arguments).not.toBe("");
        known[1] += told.arguments;
      }
    }
  }
  return message;
}

function stream(format: ToolCallFormat, { text, cut }: Case, cuts: readonly number[]): Message {
  const bytes = new TextEncoder().encode(text);
  const pieces = [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index]));
  const events = parse(format, pieces, cut === true);
  const mapper = new ChunkStream(
    { id: "x", created: 0, model: "m", system_fingerprint: "f" },
    { n: 1, includeUsage: false },
  );
  const message = accumulate(events.flatMap((event) => mapper.chunks({ choice: 0, event })));
  const ended = events.filter((event) => event.type === "call-end").length;
  return { ...message, calls: message.calls.slice(0, ended), open: message.calls.slice(ended) };
}

/** What is said of a text without reasoning. */
function say(format: ToolCallFormat, pieces: readonly string[]) {
  const parser = new OutputParser({ format, offered, reasoning: "no", newCallId: () => "id" });
  const events = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish(true)];
  const content = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  const starts = events.filter((event) => event.type === "call-start");
  return { content, calls: starts.map(({ name }) => name), complete: parser.calls };
}

describe.each(formats.map((format) => [format.name, format] as const))("%s", (_name, format) => {
  const cases = readCases(format);

  it.each(cases.map((known) => [known.title, known] as const))("%s", (_title, known) => {
    const { content, reasoning, calls, open = [] } = known;
    const expected = { content, reasoning, calls, open };
    expect(stream(format, known, [])).toEqual(expected);
    const size = new TextEncoder().encode(known.text).length;
    const all = Array.from({ length: size - 1 }, (_, index) => index + 1);
    expect(stream(format, known, all)).toEqual(expected);
    for (const cut of all) expect(stream(format, known, [cut])).toEqual(expected);
  });

  it("never says a byte of a marker", () => {
    const markers = [format.callOpen, format.callClose, format.sectionOpen, format.sectionClose];
    for (const known of cases.filter(({ calls }) => calls.length > 0)) {
      const { content, reasoning } = stream(format, known, []);
      for (const marker of markers.filter((marker) => marker !== ""))
        expect(content + reasoning, known.title).not.toContain(marker);
    }
  });

  it("reads what its grammar lets through", () => {
    const { syntax, reasoning } = format;
    if (syntax === null) return;
    const calls = [
      ["get_weather", { city: 'Zoë\'s "<b>"\n{x}', days: -2 }],
      ["ping", {}],
      [
        "book_table",
        { when: { date: "x", hours: [1.5, null] }, guests: ["a, b", ""], confirmed: true },
      ],
    ] as const;
    const written = writeCalls(syntax, calls);
    const after = syntax.afterReasoning ?? "";
    const thought = `${reasoning.open}So.${reasoning.close}${after}`;
    const canReason = format.recipients?.reasoning !== "";
    for (const before of canReason ? ["", thought] : [""]) {
      const known = { title: "", text: before + written, content: "", reasoning: "", calls: [] };
      const message = stream(format, known, []);
      expect(message.content).toBe("");
      expect(message.reasoning).toBe(before === "" ? "" : "So.");
      expect(message.calls.map(([name, args]) => [name, JSON.parse(args) as unknown])).toEqual(
        calls,
      );
    }
  });

  it("goes on with reasoning that the prompt opened", () => {
    if (format.usesChannels) return;
    const { open, close } = format.reasoning;
    for (const known of cases.filter(({ text }) => text.startsWith(open))) {
      const parser = new OutputParser({ format, offered, reasoning: "open" });
      const rest = parser.push(known.text.slice(open.length));
      const events = [...rest, ...parser.finish(known.cut !== true)];
      const said = (type: "reasoning" | "content"): string =>
        events.map((event) => (event.type === type ? event.text : "")).join("");
      expect([said("reasoning"), said("content")]).toEqual([known.reasoning, known.content]);
      expect(said("content")).not.toContain(close);
      expect(parser.calls.map((call) => [call.name, call.arguments])).toEqual(known.calls);
    }
  });

  it("makes text of what is no call, loses nothing, and does not care where it is cut", () => {
    const { syntax } = format;
    const markers = [format.callOpen, format.callClose, format.sectionOpen, format.sectionClose];
    const parts = (syntax?.body ?? []).filter((part) => typeof part === "string");
    const pieces = [
      ...markers,
      ...parts,
      ...cases.slice(0, 2).flatMap(({ text }) => text.split(/(?=[<[{])/u)),
      "get_weather",
      "{",
      "}",
      "[",
      "]",
      '"',
      ",",
      ":",
      "(",
      ")",
      "=",
      "\n",
      " ",
      "a",
      "`",
      "```json\n",
    ].filter((piece) => piece !== "");
    const [begin, end] = [format.sectionOpen, format.sectionClose].map((marker) =>
      marker.replace(/[\\^$.*+?()[\]{}|]/gu, "\\$&"),
    );
    const says = (text: string): boolean =>
      !format.silentMarkers.some((marker) => text.includes(marker)) &&
      (begin === "" || !new RegExp(`${begin}\\s*${end}`, "u").test(text));
    let state = 11;
    const next = (below: number): number => (state = (state * 48271) % 2147483647) % below;
    for (let count = 0; count < 400; count++) {
      const text = Array.from({ length: 1 + next(12) }, () => pieces[next(pieces.length)]).join("");
      const whole = say(format, [text]);
      expect(say(format, [...text]), text).toEqual(whole);
      const cut = next(text.length + 1);
      expect(say(format, [text.slice(0, cut), text.slice(cut)]), text).toEqual(whole);
      const hasHeaders = format.usesChannels || format.recipients !== null;
      if (whole.calls.length === 0 && !hasHeaders && says(text)) expect(whole.content).toBe(text);
    }
  });

  it("does its work in linear time", () => {
    const big = { title: "", content: "", reasoning: "", calls: [] };
    const [example] = cases;
    const body = example?.text.replace("Rome", "x<[{`|｜ ".repeat(30_000)) ?? "";
    const steps = (text: string): number => {
      const started = process.cpuUsage();
      stream(format, { ...big, text }, []);
      return process.cpuUsage(started).user;
    };
    // Quadratic work on 300,000 characters would take minutes.
    expect(steps(body)).toBeLessThan(20_000_000);
  });
});

it("takes a value as its schema does, behind references and in branches", () => {
  const string = { $ref: "#/$defs/Zip" };
  const own = {
    code: string,
    body: { allOf: [string, { minLength: 1 }] },
    either: { anyOf: [{ $ref: "#/$defs/Count" }, { type: "null" }] },
    list: { type: "array", items: string },
    self: { $ref: "#/$defs/Self" },
  };
  const schema = {
    allOf: [{ $ref: "#/$defs/Own" }],
    $defs: {
      Own: { type: "object", properties: own },
      Zip: { type: "string" },
      Count: { type: "integer" },
      Self: { anyOf: [{ $ref: "#/$defs/Self" }] },
    },
  };
  const format = formats.find(({ name }) => name === "qwen3-coder")!;
  const parser = new OutputParser({
    format,
    offered: new Map([["zip", schema]]),
    reasoning: "no",
  });
  const values = { code: "12345", body: '{"a": 1}', either: "7", list: "[1]", self: "true" };
  const written = Object.entries(values)
    .map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`)
    .join("");
  parser.push(`<tool_call>\n<function=zip>\n${written}</function>\n</tool_call>`);
  expect(JSON.parse(parser.calls[0]?.arguments ?? "")).toEqual({
    code: "12345",
    body: '{"a": 1}',
    either: 7,
    list: [1],
    self: true,
  });
});
