/**
 * The templates that come with llama.cpp's source, rendered as llama.cpp renders them. What it made of them
 * is recorded by scripts/templates/record.mjs, so no build of it is needed here.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { templatesDirectory } from "../../support/llama-cpp-templates.ts";

import { OutputParser } from "../../../src/chat/parser/output-parser.ts";
import { openTemplate } from "../../../src/chat/prompt/prompt.ts";
import type { ChatTemplate } from "../../../src/chat/template/template.ts";
import type { ToolDefinition } from "../../../src/chat/types.ts";
import { messagesField } from "../../../src/server/body/prompt.ts";
import { type TemplateRow, templateDocs } from "../../support/template-docs.ts";

interface Recorded {
  source: string;
  /** Digest of the text of llama.cpp's server; null where it refuses. */
  renders: Record<string, string | null>;
  /** Where it differs: of its renderer, given the messages as they are and not parts made of them. */
  unprepared: Record<string, string | null>;
}

interface Request {
  messages: unknown[];
  tools?: { function: ToolDefinition }[];
}

/** The recording's clock. */
const NOW = Date.UTC(2026, 0, 1, 12);
const roundRequests = new Set(["round", "parallel round", "two rounds"]);

const devstral = "unsloth-mistral-Devstral-Small-2507.jinja";

const lacksToolSection =
  "it has no section for tools: llama.cpp leaves them out, and here a generic prompt lists them";

const writesNone = "llama.cpp writes null in arguments as nothing; here it is None, as in Python";

/** Where Fermata's text is not llama.cpp's, and why. */
const deviations: Record<string, string> = {
  "HuggingFaceTB-SmolLM3-3B.jinja": lacksToolSection,
  "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": lacksToolSection,
  "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja": lacksToolSection,
  "deepseek-ai-DeepSeek-V3.1.jinja": lacksToolSection,
  "google-gemma-2-2b-it.jinja": lacksToolSection,
  "llama-cpp-rwkv-world.jinja": lacksToolSection,
  "microsoft-Phi-3.5-mini-instruct.jinja": lacksToolSection,
  "fireworks-ai-llama-3-firefunction-v2.jinja":
    'it writes tools from an input named "functions", which llama.cpp does not give',
  "google-gemma-4-31B-it-interleaved.jinja": writesNone,
  "google-gemma-4-31B-it.jinja": writesNone,
  "openbmb-MiniCPM5-1B.jinja":
    "llama.cpp writes objects in arguments as nothing; here they are written as Python does",
  [devstral]:
    "llama.cpp's server takes the template for Ministral 3's and makes parts of turns with reasoning, whose text the template then loses; given the messages as they are, llama.cpp's renderer writes the same text as Fermata",
};

const fixtures = join(import.meta.dirname, "../../fixtures/templates");
const recorded = readJson("llama-cpp.json") as Record<string, Recorded>;
const requests = readJson("requests.json") as Record<string, Request>;
const isPresent = existsSync(templatesDirectory);
if (!isPresent)
  console.log("skipped: llama.cpp's templates are not in the cache; npm start fetches its source");

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(join(fixtures, name), "utf8"));
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function open(source: string): ReturnType<typeof openTemplate> {
  const model = {
    chatTemplate: source,
    bosToken: "<s>",
    eosToken: "</s>",
    addBos: false,
    specialTokens: [{ id: 0, text: "<|im_start|>" }],
  };
  return openTemplate(source, model);
}

function render(template: ChatTemplate, { messages, tools }: Request): string {
  const { text, marks } = template.render(
    messagesField.read(messages, "messages", { warn: () => {} }),
    {
      tools: (tools ?? []).map((tool) => tool.function),
      generationPrompt: true,
    },
  );
  return text.replaceAll(marks.guard, "");
}

/** Whether the found format reads the calls of a turn as the template writes it; null where it writes none. */
function readsCalls({ template, format }: ReturnType<typeof openTemplate>): boolean | null {
  const { messages, tools = [] } = requests["odd arguments"] ?? { messages: [] };
  const parsed = messagesField.read(messages, "messages", { warn: () => {} });
  const [user, turn] = parsed;
  if (user === undefined || turn?.role !== "assistant") return null;
  const definitions = tools.map((tool) => tool.function);
  const write = (shown: typeof parsed): string => {
    const options = { tools: definitions, generationPrompt: false };
    const { text, marks } = template.render(shown, options);
    return text.replaceAll(marks.guard, "");
  };
  const text = write([user, turn]).slice(write([user]).length);
  if (!text.includes("Zürich")) return null;
  const offered = new Map(definitions.map((tool) => [tool.name, tool.parameters]));
  const parser = new OutputParser({ format, offered, reasoning: "no" });
  parser.push(text);
  parser.finish(true);
  const [call] = parser.calls;
  return call?.name === "get_weather" && call.arguments.includes("Zürich <b>");
}

function compare(name: string): TemplateRow {
  const source = readFileSync(join(templatesDirectory, name), "utf8");
  expect(digest(source), `${name} is not the one recorded`).toBe(recorded[name]?.source);
  const opened = open(source);
  const { template } = opened;
  const row: TemplateRow = {
    name,
    format: opened.format.name,
    equal: [],
    different: [],
    onlyHere: [],
    failed: [],
    remark: deviations[name] ?? "",
    readsCalls: roundOrNull(() => readsCalls(opened)),
    systemsApart: writesSystems(template, ["FIRST", "SECOND"]) === "FIRST ping SECOND USER",
  };
  for (const [title, request] of Object.entries(requests)) {
    let text: string | null = null;
    try {
      text = render(template, request);
    } catch (error) {
      row.failed.push([title, error instanceof Error ? error.message : String(error)]);
      continue;
    }
    const known = recorded[name]?.renders[title];
    if (known === null) row.onlyHere.push(title);
    else if (digest(text) === known) row.equal.push(title);
    else row.different.push(title);
  }
  return row;
}

/** What it writes of these system messages, the tool "ping" and a user's message, in its order. Null: it refuses. */
function writesSystems(template: ChatTemplate, systems: readonly string[]): string | null {
  const parameters = { type: "object", properties: {} };
  const request = {
    messages: [
      ...systems.map((content) => ({ role: "system", content })),
      { role: "user", content: "USER" },
    ],
    tools: [{ function: { name: "ping", description: "", parameters } }],
  };
  const text = roundOrNull(() => render(template, request));
  return text === null ? null : (text.match(/FIRST|SECOND|\bping\b|\bUSER\b/gu) ?? []).join(" ");
}

/** Templates that refuse the turn write none. */
function roundOrNull<Value>(read: () => Value | null): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

describe.skipIf(!isPresent)("templates of llama.cpp", () => {
  const rows: TemplateRow[] = [];
  beforeAll(() => {
    vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
    rows.push(...Object.keys(recorded).map(compare));
  }, 120_000);
  afterAll(() => {
    vi.useRealTimers();
  });

  it("are 70", () => {
    expect(rows).toHaveLength(70);
  });

  it("render to llama.cpp's text, but for the deviations that are told", () => {
    const unexpected = rows.filter(
      ({ different, name }) => different.length > 0 && !(name in deviations),
    );
    expect(unexpected.map(({ name, different }) => ({ name, different }))).toEqual([]);
    for (const name of Object.keys(deviations))
      expect(rows.find((row) => row.name === name)?.different, name).not.toEqual([]);
  });

  it("keep the text of a turn whose reasoning has no place, as llama.cpp's renderer does", () => {
    const { template } = open(readFileSync(join(templatesDirectory, devstral), "utf8"));
    const { different } = rows.find(({ name }) => name === devstral)!;
    expect(different).toEqual(["reasoned answer", "reasoning with text"]);
    for (const title of different)
      expect(digest(render(template, requests[title]!)), title).toBe(
        recorded[devstral]!.unprepared[title],
      );
  });

  it("fail only where the template itself refuses, as llama.cpp does", () => {
    for (const { name, failed } of rows) {
      for (const [title, message] of failed) {
        expect(recorded[name]?.renders[title], `${name}, ${title}: ${message}`).toBeNull();
        expect(message).toMatch(/^The model's chat template refuses the request: ./u);
      }
    }
  });

  it("take what clients send: users in a row, a user behind results, results in any order", () => {
    const { tools } = requests["odd arguments"]!;
    const user = (content: string): object => ({ role: "user", content });
    const call = (id: string): object => {
      const fn = { name: "get_weather", arguments: JSON.stringify({ city: id }) };
      return { id, type: "function", function: fn };
    };
    const result = (id: string): object => ({
      role: "tool",
      tool_call_id: id,
      content: `RESULT_${id}`,
    });
    const round = (...ids: string[]): object[] => [
      user("Weather?"),
      { role: "assistant", content: null, tool_calls: ids.map(call) },
      ...ids.map(result),
    ];
    let count = 0;
    for (const name of Object.keys(recorded)) {
      const { template } = open(readFileSync(join(templatesDirectory, name), "utf8"));
      const text = (...messages: object[]): string | null => {
        try {
          return render(template, { messages, ...(tools && { tools }) });
        } catch {
          return null;
        }
      };
      const words = (rendered: string | null): string[] =>
        rendered?.match(/USER_\d|RESULT_\w/gu) ?? [];
      if (text(user("Hi")) !== null)
        expect
          .soft(words(text(user("USER_1"), user("USER_2"))), name)
          .toEqual(["USER_1", "USER_2"]);
      if (text(...round("x")) === null) continue;
      count++;
      expect(words(text(...round("x"), user("USER_2"))), name).toEqual(["RESULT_x", "USER_2"]);
      const [asked, turn, first, second] = round("x", "y");
      const ordered = text(asked!, turn!, first!, second!);
      expect(text(asked!, turn!, second!, first!), name).toBe(ordered);
    }
    expect(count).toBeGreaterThan(60);
  });

  it("write each system message once, and behind the tools those that follow the first, where they take that", () => {
    const apart = rows.filter(({ systemsApart }) => systemsApart).map(({ name }) => name);
    expect(apart).toHaveLength(28);
    for (const family of ["Qwen3-0.6B", "Qwen3-Coder", "gemma-4-31B-it", "granite-4.1", "LFM2.5"])
      expect(apart.some((name) => name.includes(family))).toBe(true);
    for (const { name, systemsApart } of rows) {
      const { template } = open(readFileSync(join(templatesDirectory, name), "utf8"));
      const [one, two] = [["FIRST"], ["FIRST", "SECOND"]].map((systems) =>
        writesSystems(template, systems),
      );
      const joined = one?.replace("FIRST", "FIRST SECOND");
      expect.soft(two, name).toBe(systemsApart ? one?.replace(" USER", " SECOND USER") : joined);
    }
  });

  it("of formats with a grammar render through a tool round", () => {
    const without = rows.filter(
      ({ equal, different, onlyHere }) =>
        ![...equal, ...different, ...onlyHere].some((title) => roundRequests.has(title)),
    );
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  it("without a section for tools are rendered with all tools, calls and results", () => {
    const without = rows.filter(({ remark }) => remark === lacksToolSection);
    for (const { name } of without) {
      const { template } = open(readFileSync(join(templatesDirectory, name), "utf8"));
      expect(template.hasToolSection, name).toBe(false);
      const text = render(template, requests["parallel round"]!);
      const said = ["get_weather", "book_table", "ping", "Rome", "Oslo", "Sunny", "Rain"];
      for (const part of said) expect(text, name).toContain(part);
      expect(render(template, requests["tools"]!), name).toContain("You help");
    }
    const others = rows.filter((row) => !without.includes(row));
    for (const { name } of others)
      expect(
        open(readFileSync(join(templatesDirectory, name), "utf8")).template.hasToolSection,
        name,
      ).toBe(true);
  });

  it("write calls that the found format reads", () => {
    const unread = rows.filter((row) => row.readsCalls === false);
    // Those that have no format yet are served as `json`, whose calls they may or may not write.
    expect(unread.filter(({ format }) => format !== "json").map(({ name }) => name)).toEqual([]);
    expect(rows.filter((row) => row.readsCalls === true).length).toBeGreaterThanOrEqual(45);
  });

  it("are listed in docs/templates.md", async () => {
    await expect(templateDocs(rows, Object.keys(requests))).toMatchFileSnapshot(
      "../../../docs/templates.md",
    );
  });
});
