/** The addon of the package for this platform, which an installed Fermata brings along (scripts/release). */

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageRoot } from "../package-root.ts";

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
export function prebuiltAddon(): string | null {
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
