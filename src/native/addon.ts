/** Finds and loads the addon. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FermataError } from "../errors.ts";
import type { NativeAddon } from "./addon-types.ts";

// The same from src/native and from dist/native.
const builtAddon = fileURLToPath(new URL("../../build/Release/fermata.node", import.meta.url));

/** Where the addon is: in the package, or where `FERMATA_ADDON` says. */
export function addonPath(): string {
  const elsewhere = process.env["FERMATA_ADDON"];
  return elsewhere ? resolve(elsewhere) : builtAddon;
}

/**
 * Loads the addon; later calls return the same one.
 * @throws FermataError addon_missing
 */
export function loadAddon(): NativeAddon {
  const path = addonPath();
  if (!existsSync(path)) {
    throw new FermataError(
      "addon_missing",
      `The native addon is not built: there is no ${path}. Run \`node scripts/setup.mjs\`.`,
    );
  }
  try {
    return createRequire(import.meta.url)(path) as NativeAddon;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FermataError(
      "addon_missing",
      `The native addon does not load (${reason}). Build it again: \`node scripts/setup.mjs\`.`,
      { cause },
    );
  }
}
