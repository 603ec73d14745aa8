// What a platform's package has: an addon for each level of processors, the best first. `sets` are
// ggml's names of instruction sets, `needs` the flags of /proc/cpuinfo that a processor must have.

const avx2 = {
  sets: ["SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C"],
  needs: ["sse4_2", "avx", "avx2", "bmi2", "fma", "f16c"],
};

const x64 = [
  {
    name: "avx512",
    sets: [...avx2.sets, "AVX512", "AVX512_VNNI"],
    needs: [
      ...avx2.needs,
      "avx512f",
      "avx512cd",
      "avx512bw",
      "avx512dq",
      "avx512vl",
      "avx512_vnni",
    ],
  },
  { name: "avx2", ...avx2 },
  { name: "baseline", sets: [], needs: [] },
];

/** ggml's baseline for the architecture: NEON on arm64. */
const others = [{ name: "baseline", sets: [], needs: [] }];

export function levelsOf(architecture) {
  return architecture === "x64" ? x64 : others;
}
