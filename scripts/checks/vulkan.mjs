#!/usr/bin/env node
// npm run test:vulkan [-- step ...]: what an engine promises, on a Vulkan device, with all layers on it: the native
// tests, then the lanes that load models, agents over HTTP and faults. Where there is no GPU, a software driver serves
// (Debian, Ubuntu: mesa-vulkan-drivers), slowly. llama.cpp's Vulkan backend comes compiled from npm, unless
// `--backend vulkan` has it compiled here. Not part of `npm test`.
import { setUp } from "../setup.mjs";
import { fetchBackendLibrary } from "../setup/backend-library.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { SetupError, exitOnSetupError, say } from "../setup/report.mjs";
import { runLane } from "./lanes.mjs";
import { runNativeTests } from "./native.mjs";

// llama.cpp takes no software driver unless it is named.
process.env.GGML_VK_VISIBLE_DEVICES ??= "0";
process.env.FERMATA_TEST_GPU_LAYERS ??= "-1";

// The driver compiles a shader when it is first used, on a processor for minutes; a test waits for it. What it
// compiled is in Mesa's cache afterwards, so the steps whose tests have limits of their own are the last.
const seconds = 3600;

const lane = (name, ...files) => {
  const args = files.map((file) => `test/${name}/${file}.test.ts`);
  args.push(`--testTimeout=${seconds * 1000}`);
  return () => runLane(name, { args, live: true });
};
const steps = {
  native: () => runNativeTests({ seconds }),
  device: lane("device"),
  model: lane("model"),
  // Not rpc: where there is a device, `fermata rpc-server` lends that one.
  integrity: lane(
    "integrity",
    "engine-end",
    "engine-methods",
    "held-kill",
    "llama-options",
    "marks",
    "remote-cache",
    "replicas",
    "run-kill",
    "sampling-ranges",
    "simulate",
    "store-kill",
  ),
  agents: lane("e2e", "hold-and-resume", "ten-rounds", "soak"),
  faults: lane("faults", "deaths", "hangs", "poison"),
};

function takeSteps(names) {
  const unknown = names.find((name) => !(name in steps));
  if (unknown === undefined) return names.length > 0 ? names : Object.keys(steps);
  throw new SetupError(`No step is named ${unknown}. There are: ${Object.keys(steps).join(", ")}.`);
}

try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const selected = takeSteps(rest);
  await setUp(options);
  if (options.backend === "cpu")
    process.env.FERMATA_BACKEND_LIBRARY ??= await fetchBackendLibrary("vulkan");
  for (const name of selected) {
    const start = performance.now();
    const { ok, output, passed, failed, skipped } = await steps[name]();
    const took = ((performance.now() - start) / 1000).toFixed(0);
    if (!ok) process.stdout.write(`${output}\n`);
    say(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${took} s`);
    if (!ok) process.exitCode = 1;
  }
} catch (error) {
  exitOnSetupError(error);
}
