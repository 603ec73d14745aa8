import { expect, test, vi } from "vitest";
import { qwen } from "../../../src/chat/formats/formats.ts";
import { ConstraintMaker } from "../../../src/guidance/output-constraints.ts";
import { failed } from "../../../src/guidance/schema-jobs.ts";
import { SchemaThread } from "../../../src/guidance/schema-thread.ts";
import type { GuidedTool } from "../../../src/guidance/types.ts";

function maker(): { grammarOf(name: string, tools?: GuidedTool[]): Promise<unknown> } {
  const constraints = new ConstraintMaker({ syntax: qwen.syntax, markers: null, controls: [] });
  const guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false } as const;
  return {
    async grammarOf(name, tools = [{ name, parameters: { type: "object" } }]) {
      return (await constraints.make({ tools, guidance })).round(0, "no");
    },
  };
}

test("requests that were made longest ago are made anew", async () => {
  const { grammarOf } = maker();
  const [first, second] = [await grammarOf("first"), await grammarOf("second")];
  for (let index = 0; index < 511; index++) {
    await grammarOf(`other_${index}`);
    if (index === 300) expect(await grammarOf("first")).toBe(first);
  }
  expect(await grammarOf("first")).toBe(first);
  expect(await grammarOf("second")).not.toBe(second);
  expect(await grammarOf("second")).toEqual(second);
});

test("large ones take the place of many", async () => {
  const { grammarOf } = maker();
  const small = await grammarOf("small");
  const large = (seed: number): GuidedTool[] => {
    const parameters = { type: "object", description: "d".repeat(1_500_000), title: `${seed}` };
    return [{ name: "large", parameters }];
  };
  const first = await grammarOf("", large(1));
  expect(await grammarOf("", large(1))).toBe(first);
  expect(await grammarOf("small")).toBe(small);
  for (const seed of [2, 3, 4]) await grammarOf("", large(seed));
  expect(await grammarOf("", large(1))).not.toBe(first);
  expect(await grammarOf("small")).not.toBe(small);
});

test("one that is larger than all that may be kept takes the place of none", async () => {
  const { grammarOf } = maker();
  const small = await grammarOf("small");
  const parameters = { type: "object", description: "d".repeat(1_500_000) };
  const huge: GuidedTool[] = ["one", "two", "three"].map((name) => ({ name, parameters }));
  const first = await grammarOf("", huge);
  expect(await grammarOf("", huge)).not.toBe(first);
  expect(await grammarOf("small")).toBe(small);
});

test("what a busy machine left open is enforced the next time", async () => {
  const { grammarOf } = maker();
  const properties = { distinct: { type: "string", description: "d".repeat(10_000) } };
  const tools: GuidedTool[] = [{ name: "pick", parameters: { type: "object", properties } }];
  const run = vi.spyOn(SchemaThread.prototype, "run");
  run.mockResolvedValueOnce([failed("schema_timeout", "The schema takes more than 1 s.")]);
  const open = await grammarOf("pick", tools);
  run.mockRestore();
  const enforced = await grammarOf("pick", tools);
  expect(JSON.stringify(open)).not.toContain("distinct");
  expect(JSON.stringify(enforced)).toContain("distinct");
  expect(await grammarOf("pick", tools)).toBe(enforced);
});
