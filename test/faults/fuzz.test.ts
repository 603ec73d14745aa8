// What comes from outside as a file: templates, models and stores with random damage. Each is used or refused; none hangs or kills.
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterAll, expect, test } from "vitest";
import { qwen } from "../../src/chat/formats/formats.ts";
import { ChatTemplate } from "../../src/chat/template/template.ts";
import { checkGguf } from "../../src/engine/gguf-check.ts";
import { FermataError } from "../../src/errors.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { fakeGguf } from "../unit/engine/gguf-builder.ts";
import { modelPath } from "../support/engine.ts";
import { times, told } from "./support/injections.ts";
import { withinSeconds } from "./support/time-limit.ts";

const folder = mkdtempSync(join(tmpdir(), "fermata-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Deterministic: a failure can be repeated. */
function dice(seed: number): (sides: number) => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

/** For one file, in seconds. */
const limit = 10;

test("the limit of time ends what never would", () => {
  const forever = (): never => {
    for (;;);
  };
  expect(() => withinSeconds(0.05, forever)).toThrow(/timed out/u);
});

const pieces = [
  "{% for a in range(99999) %}",
  "{% endfor %}",
  "{% if messages %}",
  "{% endif %}",
  "{{ 'ab' * 999999 }}",
  "{{ messages | tojson }}",
  "{% set x = [x, x] %}",
  "{% set x = x ~ x %}",
  "{{ messages[0].content.constructor }}",
  "{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
  "{{ '%s' % messages }}",
  "{#",
  "-%}",
  "|",
  "(((((",
];

test("templates: each is loaded or refused, within its budget", () => {
  const source = readFileSync(join(import.meta.dirname, "../fixtures/chat/chatml.jinja"), "utf8");
  const tools = `{% for t in tools %}{{ t.function.name | upper }}{{ t | tojson(indent=2) }}{% endfor %}${source}`;
  const outcomes = { read: 0, refused: 0 };
  const model = { specialTokens: [], bosToken: "", eosToken: "" } as never;
  const count = times(150, 2000);
  for (let number = 0; number < count; number++) {
    const roll = dice(number);
    let text = tools;
    for (let change = roll(4); change >= 0; change--) {
      const at = roll(text.length);
      const end = Math.min(text.length, at + roll(30));
      const middle = [pieces[roll(pieces.length)]!, text.slice(at, end).repeat(2), ""][roll(3)]!;
      text = text.slice(0, at) + middle + text.slice(end);
    }
    try {
      expect(withinSeconds(limit, () => new ChatTemplate(text, model, null, qwen))).toBeDefined();
      outcomes.read++;
    } catch (error) {
      if (!(error instanceof FermataError)) throw error;
      expect(error.code).toBe("template_error");
      outcomes.refused++;
    }
  }
  expect(Math.min(outcomes.read, outcomes.refused)).toBeGreaterThan(0);
  told("chat template with random damage", count);
});

test("models: a damaged header is read or refused, with our own error", () => {
  const path = join(folder, "model.gguf");
  const shipped = readFileSync(modelPath).subarray(0, 400_000);
  const outcomes = { read: 0, refused: 0 };
  const count = times(400, 1500);
  for (let number = 0; number < count; number++) {
    const roll = dice(number);
    const bytes = Buffer.from(number % 4 === 0 ? shipped : fakeGguf());
    // Most of what matters is at the beginning.
    for (let change = roll(6); change >= 0; change--)
      bytes[roll(Math.min(bytes.length, 4 ** (2 + roll(8))))] = [roll(256), 0, 255][roll(3)]!;
    writeFileSync(path, roll(3) === 0 ? bytes.subarray(0, roll(bytes.length)) : bytes);
    try {
      withinSeconds(limit, () => checkGguf(path));
      outcomes.read++;
    } catch (error) {
      if (!(error instanceof FermataError)) throw error;
      outcomes.refused++;
    }
  }
  expect(Math.min(outcomes.read, outcomes.refused)).toBeGreaterThan(0);
  told("header of a model file", count);
});

const put = (id: string) => ({
  id,
  owner: "ann",
  createdAt: 2e9,
  previousResponseId: null,
  conversationId: null,
  body: { id, status: "in_progress", words: "word ".repeat(300) },
  input: [],
});

test.each([
  ["store.sqlite", "store with random damage"],
  ["store.sqlite-wal", "log of the store (WAL)"],
])("%s with damage at the start: opened or refused with our own error", async (damaged, fault) => {
  const original = join(folder, "original.sqlite");
  const store = new SqliteStore(original);
  for (let number = 0; number < 40; number++) await store.responses.create(put(`r${number}`));
  // Not closed: what was written last is in the log.
  const names = ["", "-wal"].map((end) => original + end);
  const outcomes = { opened: 0, refused: 0 };
  const count = times(40, 400);
  for (let number = 0; number < count; number++) {
    const roll = dice(number);
    const home = mkdtempSync(join(folder, "copy-"));
    for (const [index, name] of names.entries())
      copyFileSync(name, join(home, ["store.sqlite", "store.sqlite-wal"][index]!));
    const victim = join(home, damaged);
    const bytes = readFileSync(victim);
    for (let change = roll(20); change >= 0; change--) {
      const at = roll(4) === 0 ? roll(200) : roll(bytes.length);
      bytes[at] = roll(256);
    }
    writeFileSync(victim, bytes);
    if (roll(3) === 0) truncateSync(victim, roll(bytes.length));
    try {
      const copy = new SqliteStore(join(home, "store.sqlite"));
      outcomes.opened++;
      for (let known = 0; known < 40; known += 7)
        await copy.responses.find("ann", `r${known}`).catch(() => null);
      await copy.responses.create(put("new")).catch(() => null);
      await copy.close();
    } catch (error) {
      if (!(error instanceof FermataError)) throw error;
      expect(error.code).toMatch(/^store_/);
      outcomes.refused++;
    }
    rmSync(home, { recursive: true });
  }
  await store.close();
  const sound = new Database(original);
  expect(sound.pragma("integrity_check")).toEqual([{ integrity_check: "ok" }]);
  sound.close();
  rmSync(original);
  expect(outcomes.opened + outcomes.refused).toBe(count);
  told(fault, count);
});
