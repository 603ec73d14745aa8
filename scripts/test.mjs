#!/usr/bin/env node
// npm test [-- [--backend B] [step ...]]: runs every check in order, sets up what is missing beside them, and stops at
// the first that fails. With names, only those steps. What follows the name of a lane and is no name is vitest's:
// npm run test:e2e -- -t name.
import { join } from "node:path";
import { runLane } from "./checks/lanes.mjs";
import { runNativeTests, runSanitizedTests } from "./checks/native.mjs";
import { Preparations } from "./checks/preparations.mjs";
import { thisProcessor } from "./checks/processor.mjs";
import { setUpAddonsPackages, setUpPackages } from "./setup.mjs";
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
  "sanitize-address": () => runSanitizedTests("address,undefined"),
  "sanitize-thread": () => runSanitizedTests("thread"),
};

const lane = (name) => (options) => runLane(name, options);

/** After the types of tests that import packages of their own. */
const typedLane = (name, folder) => {
  const types = tool("node_modules/typescript/bin/tsc", "-p", `test/${folder}/tsconfig.json`);
  return async (options) => {
    const checked = await types();
    return checked.ok ? runLane(name, options) : checked;
  };
};

/** Those without native code. */
const plainLanes = { unit: lane("unit"), contract: lane("contract") };

/** Those that wait for processes and servers come first: compilers run beside them. */
const addonLanes = {
  e2e: typedLane("e2e", "clients"),
  faults: lane("faults"),
  integrity: lane("integrity"),
  browser: typedLane("browser", "browser"),
  model: lane("model"),
};

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

const everything = { ...textSteps, build, ...plainLanes, ...addonLanes, ...nativeSteps };
const steps = { ...everything, inspector: withInspector };
const isLane = (name) => name in plainLanes || name in addonLanes || name === "inspector";

/** What steps need beside packages. */
const needs = {
  ...Object.fromEntries([...Object.keys(addonLanes), "inspector"].map((name) => [name, ["addon"]])),
  e2e: ["addon", "clients"],
  browser: ["addon", "browser"],
  native: ["addon", "nativeTests"],
  "sanitize-address": ["addressTests"],
  "sanitize-thread": ["threadTests"],
};
const needsOf = (name) => needs[name] ?? [];

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

async function runStep(name, options, preparations) {
  let start = performance.now();
  const run = async () => {
    await preparations.ready(needsOf(name));
    start = performance.now();
    return await steps[name](options);
  };
  const result = await run().catch((error) => {
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
  const needed = new Set(selected.flatMap(needsOf));
  await (needed.size === 0 ? setUpPackages() : setUpAddonsPackages(options));
  const isAlone = selected.filter((name) => name !== "build").length === 1;
  const preparations = new Preparations(needed, options, isAlone);
  // Of one lane, a person wants to see what happens.
  const live = selected.filter(isLane).length === 1;
  try {
    for (const name of selected) {
      const { failed } = preparations;
      const next = failed ? selected.find((each) => needsOf(each).includes(failed)) : name;
      if (!(await runStep(next, { args, live }, preparations))) break;
    }
  } finally {
    await preparations.end();
  }
} catch (error) {
  exitOnSetupError(error);
}

const { passed, failed, skipped } = totals;
process.stdout.write(
  `\n${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}\n`,
);
process.exitCode = failed > 0 ? 1 : 0;
