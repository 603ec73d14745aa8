import { describe, expect, it } from "vitest";

import { cutMarker, fitOutputs, shareRoom } from "../../../src/chat/hold/fit-results.ts";
import type { ToolOutput } from "../../../src/chat/types.ts";

const output = (content: string): ToolOutput => ({ callId: "c", name: "f", content });
const countTokens = (text: string): Promise<number> => Promise.resolve([...text].length);
const fit = (contents: string[], comfortable: number, most = comfortable + 100) =>
  fitOutputs(contents.map(output), {
    measure: async (outputs) => ({
      tokenCount: 10 + outputs.reduce((sum, { content }) => sum + [...content].length, 0),
    }),
    countTokens,
    comfortable,
    most,
  });

describe("fitOutputs", () => {
  it("leaves what fits alone", async () => {
    const fitted = await fit(["a".repeat(90)], 100);
    expect(fitted).toMatchObject({ truncatedCount: 0, outputs: [output("a".repeat(90))] });
  });

  it("cuts at the end, says how much, and fills the room", async () => {
    const fitted = await fit(["a".repeat(5000)], 400);
    const content = fitted?.outputs[0]?.content ?? "";
    const kept = /^a*/u.exec(content)?.[0].length ?? 0;
    expect(content).toBe("a".repeat(kept) + cutMarker(5000 - kept));
    expect(fitted?.built.tokenCount).toBeLessThanOrEqual(400);
    expect(fitted?.built.tokenCount).toBeGreaterThan(370);
    expect(fitted?.truncatedCount).toBe(1);
  });

  it("shares the room: small results stay whole", async () => {
    const fitted = await fit(["small", "b".repeat(3000), "c".repeat(3000)], 600);
    expect(fitted?.outputs[0]?.content).toBe("small");
    expect(fitted?.truncatedCount).toBe(2);
    const [b = 0, c = 0] = [1, 2].map((index) => fitted?.outputs[index]?.content.length);
    expect(Math.abs(b - c)).toBeLessThan(3);
    expect(fitted?.built.tokenCount).toBeLessThanOrEqual(600);
  });

  it("never cuts a code point", async () => {
    for (let room = 150; room < 160; room++) {
      const fitted = await fit(["😀".repeat(1000)], room);
      expect(() => encodeURIComponent(fitted?.outputs[0]?.content ?? "\ud800")).not.toThrow();
    }
  });

  it("gives up when not even markers fit", async () => {
    expect(await fit(["a".repeat(500)], 20, 30)).toBeNull();
  });

  it("divides fairly", () => {
    expect(shareRoom([10, 500, 40], 150)).toEqual([10, 100, 40]);
    expect(shareRoom([500, 500], 101)).toEqual([50, 51]);
    expect(shareRoom([5], 0)).toEqual([0]);
  });
});
