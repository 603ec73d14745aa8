import { describe, expect, it } from "vitest";
import { Detokenizer } from "../../../src/engine/generation.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("Detokenizer", () => {
  it("gives the same text wherever the bytes are cut, and never half a character", () => {
    const text = "a é 中 🌦️ \u{10ffff}";
    const all = bytes(text);
    for (let size = 1; size <= all.length; size++) {
      const detokenizer = new Detokenizer();
      const pieces: string[] = [];
      for (let at = 0; at < all.length; at += size) {
        pieces.push(detokenizer.push(all.subarray(at, at + size)));
      }
      pieces.push(detokenizer.end());
      expect(pieces.join("")).toBe(text);
      expect(pieces.join("|")).not.toContain("\ufffd");
    }
  });

  it("replaces bytes that are no text, and an unfinished end", () => {
    const detokenizer = new Detokenizer();
    expect(detokenizer.push(new Uint8Array([0x61, 0xff, 0x62]))).toBe("a\ufffdb");
    expect(detokenizer.push(bytes("é").subarray(0, 1))).toBe("");
    expect(detokenizer.end()).toBe("\ufffd");
    expect(detokenizer.push(bytes("new"))).toBe("new");
  });

  it("keeps a byte order mark, which a model may write", () => {
    expect(new Detokenizer().push(bytes("\ufeffa"))).toBe("\ufeffa");
  });
});
