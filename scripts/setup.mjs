#!/usr/bin/env node
// node scripts/setup.mjs [--backend cpu|cuda|metal|vulkan] [--fetch-tools]: brings a clone to where it can run.
import { fileURLToPath } from "node:url";
import { setUpDependencies } from "./setup/dependencies.mjs";
import { setUpLlamaSource } from "./setup/llama-source.mjs";
import { nativeIsCurrent, setUpNative } from "./setup/native-build.mjs";
import { takeSetupOptions } from "./setup/options.mjs";
import { SetupError, exitOnSetupError } from "./setup/report.mjs";
import { setUpPage } from "./setup/page-build.mjs";
import { checkNode, checkToolchain } from "./setup/toolchain.mjs";
import { setUpTypeScript } from "./setup/typescript-build.mjs";

/** npm packages only: enough to format, lint and check types. */
export async function setUpPackages() {
  checkNode();
  await setUpDependencies();
}

/** Enough for help, and to find what is wrong with a command. */
export async function setUpCommandLine() {
  checkNode();
  await checkToolchain();
  await setUpDependencies();
  await setUpTypeScript();
}

/** Everything below TypeScript. */
export async function setUpEngine(options) {
  checkNode();
  // Before anything is downloaded, since a missing compiler ends it all.
  if (!nativeIsCurrent(options)) await checkToolchain();
  await setUpDependencies();
  await setUpLlamaSource();
  await setUpNative(options);
}

/** Each step looks at its stamp first, so that nothing is started when nothing changed. */
export async function setUp(options) {
  await setUpEngine(options);
  await setUpTypeScript();
  await setUpPage();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { options, rest } = takeSetupOptions(process.argv.slice(2));
    if (rest.length > 0) throw new SetupError(`Unknown argument ${rest[0]}.`);
    await setUp(options);
  } catch (error) {
    exitOnSetupError(error);
  }
}
