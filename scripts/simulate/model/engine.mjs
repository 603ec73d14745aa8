// The scheduler that serves, on a backend that computes nothing: native/simulation.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "../../setup/paths.mjs";
import { SetupError } from "../../setup/report.mjs";

const addonPath = join(root, "build/Release/fermata_simulation.node");
let addon;

function loadAddon() {
  if (!existsSync(addonPath)) throw new SetupError("The simulator needs `npm run setup`.");
  addon ??= createRequire(import.meta.url)(addonPath);
  return addon;
}

/** An engine as `fermata serve` runs it, with the options of a calibration. */
export function makeEngine(options) {
  const { SimulatedEngine } = loadAddon();
  return new SimulatedEngine(options);
}

/** A Redis that the engines of several replicas share. */
export function makeSharedFiles(speed) {
  const { SharedFiles } = loadAddon();
  return new SharedFiles(speed);
}
