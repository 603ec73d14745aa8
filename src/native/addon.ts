/** Finds and loads the addon: what was built here, or the package for this platform that an installed Fermata brings along (scripts/release). */

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { FermataError } from "../errors.ts";
import { packageRoot } from "../package-root.ts";
import type { NativeAddon } from "./addon-types.ts";

const builtAddon = fileURLToPath(new URL("build/Release/fermata.node", packageRoot));

/** Where the addon is: where `FERMATA_ADDON` says, in the clone that built it, or in the platform's package. */
export function addonPath(): string {
  const elsewhere = process.env["FERMATA_ADDON"];
  if (elsewhere) return resolve(elsewhere);
  return existsSync(builtAddon) ? builtAddon : (prebuiltAddon() ?? builtAddon);
}

/** A clone has the means to build it; an installed package has not. */
export const canBuild = existsSync(fileURLToPath(new URL("scripts/setup.mjs", packageRoot)));
const remedy = canBuild
  ? "Build it: `node scripts/setup.mjs`."
  : `No addon is installed for ${process.platform}-${process.arch} and this processor. Install again without --omit=optional, or build Fermata from its source.`;

/** What to do when the system's loader refuses the addon, which was made on another system or for a GPU. */
function remedyFor(reason: string): string {
  const glibc = /`GLIBC_([\d.]+)' not found/.exec(reason)?.[1];
  if (glibc !== undefined)
    return `It needs glibc ${glibc} or newer, and this system's is older: build Fermata from its source here.`;
  const library = /lib(?:vulkan|cuda|cudart|cublas|cublasLt)\.so[.\d]*/.exec(reason)?.[0];
  if (library === undefined) return remedy;
  const source = library.startsWith("libvulkan")
    ? "Vulkan's loader (Debian, Ubuntu: apt-get install libvulkan1)"
    : "NVIDIA's CUDA libraries, of the version that it was compiled with";
  return `It was compiled for a GPU: install ${source}, or compile it for the CPU: \`npm run setup -- --backend cpu\`.`;
}

/**
 * Loads the addon; later calls return the same one.
 * @throws FermataError addon_missing
 */
export function loadAddon(): NativeAddon {
  const path = addonPath();
  if (!existsSync(path)) {
    throw new FermataError("addon_missing", `The native addon ${path} is missing. ${remedy}`);
  }
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FermataError(
      "addon_missing",
      `The native addon does not load (${reason}). ${remedyFor(reason)}`,
      { cause },
    );
  }
}

/** An addon compiled for a level of processors; a package lists its best first. */
interface Level {
  file: string;
  /** Flags as /proc/cpuinfo has them. */
  needs: string[];
}

interface PlatformPackage {
  fermata: { levels: Level[] };
}

/** Null: there is no such package, or none of its addons runs on this processor. */
function prebuiltAddon(): string | null {
  const require = createRequire(packageRoot);
  const { name } = require("./package.json") as { name: string };
  try {
    const manifest = require.resolve(`${name}-${process.platform}-${process.arch}/package.json`);
    const { fermata } = require(manifest) as PlatformPackage;
    const file = bestAddon(fermata.levels, processorFlags());
    return file === null ? null : join(dirname(manifest), file);
  } catch {
    return null;
  }
}

/** The first whose flags are all there. */
export function bestAddon(levels: readonly Level[], flags: ReadonlySet<string>): string | null {
  return levels.find(({ needs }) => needs.every((flag) => flags.has(flag)))?.file ?? null;
}

/** Empty where the system does not tell; then only an addon that needs nothing runs. */
function processorFlags(): Set<string> {
  const file = "/proc/cpuinfo";
  if (!existsSync(file)) return new Set();
  const [, flags = ""] = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(readFileSync(file, "utf8")) ?? [];
  return new Set(flags.split(" "));
}
