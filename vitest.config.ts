import { defineConfig } from "vitest/config";

// `npm run test:<lane>` runs one. Lanes that load the addon or start servers run one file at a time,
// since each needs the whole machine.
function lane(name: string, { serial = false, seconds = 10, include = [] as string[] } = {}) {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`, ...include],
      environment: "node" as const,
      // A native fault then ends one file's process, not the run.
      pool: "forks" as const,
      fileParallelism: !serial,
      testTimeout: seconds * 1000,
      hookTimeout: Math.max(seconds, 60) * 1000,
      expect: { poll: { timeout: (seconds * 1000) / 2 } },
    },
  };
}

export default defineConfig({
  test: {
    projects: [
      lane("unit", { include: ["test/*.test.ts"] }),
      lane("contract"),
      lane("integrity", { serial: true, seconds: 60 }),
      lane("model", { serial: true, seconds: 120 }),
      lane("browser", { serial: true, seconds: 90 }),
      lane("e2e", { serial: true, seconds: 120, include: ["test/clients/*.test.ts"] }),
    ],
  },
});
