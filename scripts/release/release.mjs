#!/usr/bin/env node
// npm run release -- --help
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { setUp } from "../setup.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { root } from "../setup/paths.mjs";
import { SetupError, exitOnSetupError, say } from "../setup/report.mjs";
import { buildAddon } from "./addons.mjs";
import { checkPackages } from "./check.mjs";
import { levelsOf } from "./levels.mjs";
import { billOfMaterials, components, licenceList, sha256 } from "./notices.mjs";
import {
  assembleMain,
  assemblePlatform,
  pack,
  packageName,
  platformName,
  platforms,
} from "./packages.mjs";

const help = `npm run release -- [options]

Makes the npm packages of this platform: ${packageName}, and ${platformName()} with the native
addon compiled for each level of processors. Beside them: SHA256SUMS, a bill of materials
(sbom.json) and the licences of what they contain (LICENCES.md).

  --out DIR       where they go (default: build/release)
  --level NAME    only these levels of processors, of ${levelsOf(process.arch)
    .map(({ name }) => name)
    .join(", ")} (default: all)
  --platform P    ${packageName} also asks for the package of this platform, made elsewhere and published with
                  it, of ${platforms.join(", ")}; may be repeated
  --backend B     cpu, cuda, metal or vulkan
  --check         installs them where there is no compiler, and asks the installed server a question
  --help          this text
`;

const flags = {
  out: { type: "string", default: join(root, "build/release") },
  level: { type: "string", multiple: true },
  platform: { type: "string", multiple: true, default: [] },
  check: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
};

function takeLevels(wanted) {
  const levels = levelsOf(process.arch);
  const unknown = wanted?.find((name) => !levels.some((level) => level.name === name));
  if (unknown !== undefined)
    throw new SetupError(`--level must be one of ${levels.map(({ name }) => name).join(", ")}.`);
  return wanted === undefined ? levels : levels.filter(({ name }) => wanted.includes(name));
}

function checkPlatforms(wanted) {
  if (wanted.some((name) => !platforms.includes(name)))
    throw new SetupError(`--platform must be one of ${platforms.join(", ")}.`);
}

function parse(args) {
  try {
    return parseArgs({ args, options: flags }).values;
  } catch (error) {
    throw new SetupError(`${error.message}\nTry: npm run release -- --help`);
  }
}

async function release(setupOptions, { out, level, platform: others, check }) {
  const levels = takeLevels(level);
  checkPlatforms(others);
  const target = resolve(out);
  await setUp(setupOptions);
  if (existsSync(target)) rmSync(target, { recursive: true });
  mkdirSync(target, { recursive: true });
  const work = join(root, "build/release-packages");
  const [main, platform] = [join(work, packageName), join(work, platformName())];
  assembleMain(main, others);
  assemblePlatform(platform, levels);
  for (const one of levels)
    await buildAddon(one, setupOptions.backend, join(platform, `${one.name}.node`));
  const parts = await components();
  const licences = licenceList(parts);
  for (const directory of [main, platform, target])
    writeFileSync(join(directory, "LICENCES.md"), licences);
  const bill = await billOfMaterials(parts);
  writeFileSync(join(target, "sbom.json"), bill);
  const packed = [await pack(main, target), await pack(platform, target)];
  const sums = packed.map(({ file }) => `${sha256(file)}  ${basename(file)}\n`);
  writeFileSync(join(target, "SHA256SUMS"), sums.join(""));
  for (const { file, bytes } of packed) say(`${file}: ${(bytes / 2 ** 20).toFixed(1)} MiB`);
  if (check)
    await checkPackages(
      packed.map(({ file }) => file),
      bill,
    );
}

try {
  const { options: setupOptions, rest } = takeSetupOptions(process.argv.slice(2));
  const options = parse(rest);
  if (options.help) process.stdout.write(help);
  else await release(setupOptions, options);
} catch (error) {
  exitOnSetupError(error);
}
