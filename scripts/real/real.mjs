#!/usr/bin/env node
// npm run test:real [-- name ...]: fetches real models (1.5 GB in all, kept in the cache), runs the vitest lane
// `real` on them, then 30 tasks over real MCP servers. Names choose: models, whose tests are run, `restart`, which runs one test
// of qwen2.5-coder, or `tasks`.
// Tasks that have a result are not run again; `--again` runs all.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setUp } from "../setup.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { root } from "../setup/paths.mjs";
import { SetupError, exitOnSetupError } from "../setup/report.mjs";
import { fetchRealModel, realModels } from "./models.mjs";
import { runTasks } from "./tasks.mjs";

try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const isAgain = rest.includes("--again");
  const names = rest.filter((name) => name !== "--again");
  const known = [...realModels, "restart", "tasks"];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown) {
    throw new SetupError(`Nothing is named ${unknown}. There are: ${known.join(", ")}.`);
  }
  await setUp(options);
  const chosen = names.length > 0 ? names : [...realModels, "tasks"];
  const models = chosen.filter((name) => realModels.includes(name));
  if (models.length > 0) await runLane(models);
  if (chosen.includes("restart")) await runLane(["qwen2.5-coder"], "test/real/restart.test.ts");
  if (chosen.includes("tasks") && !(await runTasks({ isAgain }))) process.exitCode = 1;
} catch (error) {
  exitOnSetupError(error);
}

/** @param files those whose path contains one of them; default: all */
async function runLane(models, ...files) {
  const paths = {};
  for (const name of models) paths[name] = await fetchRealModel(name);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(process.execPath, [vitest, "run", "--project", "real", ...files], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, FERMATA_REAL_MODELS: JSON.stringify(paths) },
  });
  if (status !== 0) process.exitCode = status ?? 1;
}
