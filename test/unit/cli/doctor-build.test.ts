import { expect, test } from "vitest";
import { unusedFindings } from "../../../src/cli/doctor/examine-build.ts";

const machine = { features: ["SSE3", "AVX2", "AVX512_BF16"], gpus: ["renderD128 (Vulkan)"] };
const build = { features: ["AVX2"], backend: "cpu" as const };

test("what the build does not use, and how a clone and a package come to use it", () => {
  const [clone, installed] = [true, false].map((isClone) =>
    unusedFindings(machine, build, isClone),
  );
  const what = [
    "the CPU has AVX512_BF16 and the build does not use it",
    "there is a GPU (renderD128 (Vulkan)), and the build only uses the CPU",
  ];
  expect(clone!.map((finding) => finding.what)).toEqual(what);
  expect(installed!.map((finding) => finding.what)).toEqual(what);
  for (const { remedy } of clone!) expect(remedy).toContain("npm run setup");
  for (const { remedy } of installed!) expect(remedy).toContain("in a clone of Fermata");
});

test("a build that uses all that there is", () => {
  const fast = { features: ["AVX2", "AVX512_BF16"], backend: "vulkan" as const };
  expect(unusedFindings(machine, fast, false)).toEqual([]);
  expect(unusedFindings({ features: null, gpus: [] }, build, false)).toEqual([]);
});
