#!/usr/bin/env node
// npm test [-- [--backend B] [step ...]]: sets up what is missing, then runs every check in order
// and stops at the first that fails. With names, only those steps. What follows the name of a lane
// and is no name is vitest's: npm run test:e2e -- -t name.
import { join } from "node:path";
import { runLane } from "./checks/lanes.mjs";
import { hasSanitizer, runNativeTests, runSanitizedTests } from "./checks/native.mjs";
import { thisProcessor } from "./checks/processor.mjs";
import { setUpEngine, setUpPackages } from "./setup.mjs";
import { setUpBrowser } from "./setup/browser.mjs";
import { setUpClients } from "./setup/clients.mjs";
import { setUpLlamaSource } from "./setup/llama-source.mjs";
import { takeSetupOptions } from "./setup/options.mjs";
import { installLocked } from "./setup/locked-packages.mjs";
import { setUpPage } from "./setup/page-build.mjs";
import { root } from "./setup/paths.mjs";
import { SetupError, exitOnSetupError } from "./setup/report.mjs";
import { capture } from "./setup/run.mjs";
import { setUpTypeScript } from "./setup/typescript-build.mjs";

const tool =
  (path, ...args) =>
  async () => {
    const { code, output } = await capture(process.execPath, [join(root, path), ...args], {
      cwd: root,
    });
    return { ok: code === 0, output };
  };

/** One after the other, up to the first that fails. */
const allOf =
  (...checks) =>
  async () => {
    for (const check of checks) {
      const result = await check();
      if (!result.ok) return result;
    }
    return { ok: true };
  };

const sanitize = (sanitizers) => async () =>
  (await hasSanitizer(sanitizers))
    ? runSanitizedTests(sanitizers)
    : { ok: true, skipped: 1, note: "this compiler has no such sanitizer" };

const textSteps = {
  format: tool("node_modules/oxfmt/bin/oxfmt", "--check"),
  "format-cpp": tool("scripts/checks/format-cpp.mjs"),
  lint: tool("node_modules/oxlint/bin/oxlint", "--deny-warnings"),
  types: allOf(
    tool("node_modules/typescript/bin/tsc", "-p", "tsconfig.json"),
    tool("node_modules/typescript/bin/tsc", "-p", "ui/tsconfig.json"),
  ),
  unused: tool("node_modules/knip/bin/knip.js"),
};

const nativeSteps = {
  native: runNativeTests,
  "sanitize-address": sanitize("address,undefined"),
  "sanitize-thread": sanitize("thread"),
};

const ownLanes = Object.fromEntries(
  ["contract", "integrity", "model", "faults"].map((name) => [
    name,
    (options) => runLane(name, options),
  ]),
);

/** It reads llama.cpp's templates. */
const unit = async (options) => {
  await setUpLlamaSource();
  return runLane("unit", options);
};

const clientTypes = tool("node_modules/typescript/bin/tsc", "-p", "test/clients/tsconfig.json");

/** With other people's clients; their types are checked where they are installed. */
const endToEnd = async (options) => {
  await setUpClients();
  const types = await clientTypes();
  return types.ok ? runLane("e2e", options) : types;
};

const browserTypes = tool("node_modules/typescript/bin/tsc", "-p", "test/browser/tsconfig.json");

/** The web page in a browser, whose packages are checked where they are installed. */
const inBrowser = async (options) => {
  await setUpBrowser();
  const types = await browserTypes();
  return types.ok ? runLane("browser", options) : types;
};

const { faults, ...beforeFaults } = ownLanes;
const lanes = { unit, ...beforeFaults, e2e: endToEnd, faults, browser: inBrowser };

/** On demand: the MCP inspector is large; it and the conformance suite need a newer Node.js than Fermata does. */
const withInspector = async (options) => {
  await installLocked(
    join(root, "test/inspector"),
    "Installing the MCP inspector and conformance suite",
  );
  return runLane("inspector", options);
};

const build = async () => {
  await setUpTypeScript();
  await setUpPage();
  return { ok: true };
};

const everything = { ...textSteps, ...nativeSteps, build, ...lanes };
const steps = { ...everything, inspector: withInspector };
const isLane = (name) => name in lanes || name === "inspector";

/** Steps that run without the addon. */
const addonFree = new Set([...Object.keys(textSteps), "build", "unit", "contract"]);

/** The steps to run, in order, and what is passed on to vitest. */
function select(given) {
  if (given.length === 0) return { selected: Object.keys(everything), args: [] };
  const firstOther = given.findIndex((name) => !(name in steps));
  const names = firstOther < 0 ? given : given.slice(0, firstOther);
  const args = given.slice(names.length);
  // A bare word is the mistyped name of a check, not a file or an option of vitest.
  const forVitest = args.length > 0 && /^-|[./]/.test(args[0]);
  if (args.length > 0 && !(forVitest && names.length === 1 && isLane(names[0]))) {
    throw new SetupError(
      `No check is named ${args[0]}. There are: ${Object.keys(everything).join(", ")}.`,
    );
  }
  const wanted = new Set(names);
  if (names.some(isLane)) wanted.add("build");
  return { selected: Object.keys(steps).filter((name) => wanted.has(name)), args };
}

const totals = { passed: 0, failed: 0, skipped: 0 };

async function runStep(name, options) {
  const start = performance.now();
  const result = await steps[name](options).catch((error) => {
    if (!(error instanceof SetupError)) throw error;
    return { ok: false, output: error.message };
  });
  const { ok, output = "", passed = 0, failed = ok ? 0 : 1, skipped = 0, note } = result;
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const counts =
    passed + skipped > 0 ? `${passed} passed${skipped ? `, ${skipped} skipped` : ""}` : "";
  const details = [counts, note].filter(Boolean).join("; ");
  if (!ok) process.stdout.write(`\n${output.trimEnd()}\n\n`);
  process.stdout.write(
    `${ok ? "ok  " : "FAIL"} ${name.padEnd(17)} ${seconds.padStart(6)} s  ${details}\n`,
  );
  return ok;
}

try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const { selected, args } = select(rest);
  process.stdout.write(`${thisProcessor()}\n`);
  const withoutAddon = selected.every((name) => addonFree.has(name));
  await (withoutAddon ? setUpPackages() : setUpEngine(options));
  // Of one lane, a person wants to see what happens.
  const live = selected.filter(isLane).length === 1;
  for (const name of selected) {
    if (!(await runStep(name, { args, live }))) break;
  }
} catch (error) {
  exitOnSetupError(error);
}

const { passed, failed, skipped } = totals;
process.stdout.write(
  `\n${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}\n`,
);
process.exitCode = failed > 0 ? 1 : 0;
