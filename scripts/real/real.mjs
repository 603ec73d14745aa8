#!/usr/bin/env node
// npm run test:real [-- name ...]: fetches real models (1.5 GB in all, kept in the cache), runs the vitest lane
// `real` on them, then 30 tasks over real MCP servers. Names choose: models, whose tests are run, or `tasks`.
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
  const known = [...realModels, "tasks"];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown) {
    throw new SetupError(`Nothing is named ${unknown}. There are: ${known.join(", ")}.`);
  }
  await setUp(options);
  const chosen = names.length > 0 ? names : known;
  const models = chosen.filter((name) => name !== "tasks");
  if (models.length > 0) await runLane(models);
  if (chosen.includes("tasks") && !(await runTasks({ isAgain }))) process.exitCode = 1;
} catch (error) {
  exitOnSetupError(error);
}

async function runLane(models) {
  const paths = {};
  for (const name of models) paths[name] = await fetchRealModel(name);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(process.execPath, [vitest, "run", "--project", "real"], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, FERMATA_REAL_MODELS: JSON.stringify(paths) },
  });
  process.exitCode = status ?? 1;
}
