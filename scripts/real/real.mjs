#!/usr/bin/env node
// npm run test:real [-- model ...]: fetches real models (1.5 GB in all, kept in the cache) and runs the
// vitest lane `real` on them. With names, only these models; tests of the others are skipped.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setUp } from "../setup.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { root } from "../setup/paths.mjs";
import { SetupError, exitOnSetupError } from "../setup/report.mjs";
import { fetchRealModel, realModels } from "./models.mjs";

try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const unknown = rest.find((name) => !realModels.includes(name));
  if (unknown) {
    throw new SetupError(`No model is named ${unknown}. There are: ${realModels.join(", ")}.`);
  }
  await setUp(options);
  const paths = {};
  for (const name of rest.length > 0 ? rest : realModels) {
    paths[name] = await fetchRealModel(name);
  }
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const { status } = spawnSync(process.execPath, [vitest, "run", "--project", "real"], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, FERMATA_REAL_MODELS: JSON.stringify(paths) },
  });
  process.exitCode = status ?? 1;
} catch (error) {
  exitOnSetupError(error);
}
