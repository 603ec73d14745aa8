// The JSON Schema Test Suite: every instance walked through the masks of its schema.
import { readFileSync } from "node:fs";
import type { Engine } from "../../src/engine/engine.ts";
import type { Grammar } from "../../src/engine/types.ts";
import { FermataError } from "../../src/errors.ts";
import { jsonValue } from "../../src/guidance/json-values.ts";
import { documentStyle } from "../../src/guidance/lark.ts";
import { compileSchema } from "../../src/guidance/schema/compile.ts";

export type SuiteDraft = "draft2020-12" | "draft7";

interface SuiteCase {
  keyword: string;
  description: string;
  schema: unknown;
  tests: { description: string; data: unknown; valid: boolean }[];
}

export interface KeywordResult {
  tests: number;
  compiled: number;
  valid: number;
  /** Valid instances that the masks refuse: `schema: instance`. */
  rejected: string[];
  /** Invalid instances that they let through. */
  accepted: string[];
  /** Why schemas do not compile, each once. */
  reasons: Set<string>;
}

/** Schemas say their draft, as draft 7 is not told apart from 2020-12 by its keywords alone. */
export function suiteCases(draft: SuiteDraft): SuiteCase[] {
  const url = new URL(`../fixtures/json-schema-test-suite/${draft}.jsonl`, import.meta.url);
  const cases = readFileSync(url, "utf8").trim().split("\n");
  return cases.map((line) => {
    const one = JSON.parse(line) as SuiteCase;
    return { ...one, schema: withDialect(one.schema, draft) };
  });
}

function withDialect(schema: unknown, draft: SuiteDraft): unknown {
  if (draft !== "draft7" || typeof schema !== "object" || schema === null) return schema;
  return { $schema: "http://json-schema.org/draft-07/schema#", ...schema };
}

export async function walkSuite(
  engine: Engine,
  draft: SuiteDraft,
): Promise<Map<string, KeywordResult>> {
  const results = new Map<string, KeywordResult>();
  for (const one of suiteCases(draft)) {
    let result = results.get(one.keyword);
    if (result === undefined) {
      result = { tests: 0, compiled: 0, valid: 0, rejected: [], accepted: [], reasons: new Set() };
      results.set(one.keyword, result);
    }
    await walkCase(engine, one, result);
  }
  return results;
}

async function walkCase(
  engine: Engine,
  { description, schema, tests }: SuiteCase,
  result: KeywordResult,
): Promise<void> {
  result.tests += tests.length;
  const accepts = await acceptor(engine, schema);
  if (typeof accepts === "string") {
    result.reasons.add(accepts);
    return;
  }
  result.compiled += tests.length;
  for (const test of tests) {
    const isAccepted = await accepts(JSON.stringify(test.data));
    if (test.valid) result.valid += 1;
    if (isAccepted === test.valid) continue;
    (test.valid ? result.rejected : result.accepted).push(`${description}: ${test.description}`);
  }
}

/** Whether masks let a text through. @returns why there are none */
export async function acceptor(
  engine: Engine,
  schema: unknown,
): Promise<string | ((text: string) => Promise<boolean>)> {
  const grammar = await exactGrammar(engine, schema);
  if (typeof grammar === "string") return grammar;
  return async (text) => grammar?.check(await engine.tokenize(text)).complete ?? false;
}

/** Of a schema that masks enforce to the letter. @returns why they do not; null: it has no value */
export async function exactGrammar(
  engine: Engine,
  schema: unknown,
): Promise<string | Grammar | null> {
  try {
    const compiled = compileSchema(schema, { closed: false, objectOnly: false });
    const [issue] = compiled.issues;
    if (issue !== undefined) return `\`${issue.keyword}\` ${issue.reason}`;
    if (compiled.schema === null) return null;
    const text = `start: ${jsonValue(compiled.schema, documentStyle)}\n`;
    return await engine.compileGrammar({ kind: "lark", text });
  } catch (error) {
    if (error instanceof FermataError && error.status === 400) return error.message;
    throw error;
  }
}
