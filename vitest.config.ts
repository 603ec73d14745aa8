import { defineConfig } from "vitest/config";
import { postgresPrograms } from "./test/support/postgres-server.ts";

// `npm run test:<lane>` runs one. Lanes that load the addon or start servers run one file at a time,
// since each needs the whole machine. Limits are many times what a test takes, for machines that are slow or
// busy: no test says by them how fast something is. Lanes without native code share a process between
// files: importing the packages anew for each file took three times as long as the tests.
function lane(name: string, { native = true, seconds = 60, include = [] as string[] } = {}) {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`, ...include],
      environment: "node" as const,
      globalSetup: "test/support/temporary-folder.ts",
      // A native fault then ends one file's process, not the run.
      pool: "forks" as const,
      // vitest itself would leave one processor idle.
      maxWorkers: native ? 1 : "100%",
      isolate: native,
      testTimeout: seconds * 1000,
      hookTimeout: seconds * 1000,
      expect: { poll: { timeout: (seconds * 1000) / 2 } },
    },
  };
}

/**
 * Contract tests on a database, in one process with one server: of those that need a store, the quick ones.
 * FERMATA_TEST_STORE=postgres runs the whole lane so.
 */
const onPostgres = {
  test: {
    ...lane("contract", { native: false, seconds: 120 }).test,
    name: "contract-postgres",
    include: [
      "responses-restart",
      "approval-restart",
      "conversations-restart",
      "stored-completions",
    ].map((file) => `test/contract/${file}.test.ts`),
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
    env: { FERMATA_TEST_STORE: "postgres" },
  },
};

const hasBothStores =
  process.env["FERMATA_TEST_STORE"] === undefined && postgresPrograms() !== null;

export default defineConfig({
  test: {
    projects: [
      lane("unit", { native: false, include: ["test/*.test.ts"] }),
      lane("contract", { native: false }),
      ...(hasBothStores ? [onPostgres] : []),
      lane("integrity", { seconds: 120 }),
      lane("model", { seconds: 240 }),
      lane("browser", { seconds: 240 }),
      lane("faults", { seconds: 240 }),
      // On demand, by `npm run test:real`, which fetches the models.
      lane("real", { seconds: 1800 }),
      // On demand, by `npm run test:inspector`.
      lane("inspector", { seconds: 240 }),
      // On demand, by `npm run test:vulkan`: on a software driver a step takes long.
      lane("device", { seconds: 600 }),
      lane("e2e", { seconds: 240, include: ["test/clients/*.test.ts"] }),
    ],
  },
});
