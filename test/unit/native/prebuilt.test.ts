/** Which addon of a platform's package a processor gets. */

import { expect, test } from "vitest";
import { bestAddon } from "../../../src/native/addon.ts";

const levels = [
  { file: "avx512.node", needs: ["avx2", "avx512f", "avx512_vnni"] },
  { file: "avx2.node", needs: ["avx2"] },
];

test.each([
  [["sse4_2", "avx2", "avx512f", "avx512_vnni"], "avx512.node"],
  // The first generation with AVX-512 has no VNNI.
  [["sse4_2", "avx2", "avx512f"], "avx2.node"],
  [["sse4_2"], null],
  [[], null],
])("a processor with %j: %s", (flags, file) => {
  expect(bestAddon(levels, new Set(flags))).toBe(file);
});

test("an addon that needs nothing runs everywhere", () => {
  expect(bestAddon([...levels, { file: "baseline.node", needs: [] }], new Set())).toBe(
    "baseline.node",
  );
});
