import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { distDir } from "../../setup/paths.mjs";

/** A module of the built `src/`, by its path there. */
export async function loadDist(...path) {
  return await import(pathToFileURL(join(distDir, ...path)).href);
}
