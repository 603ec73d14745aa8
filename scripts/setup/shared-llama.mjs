import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { llamaKey } from "./native-inputs.mjs";
import { buildDir, cacheDir, ownLlamaSource } from "./paths.mjs";

const targetsName = "llama-targets.cmake";

function sharedDir(options) {
  return join(cacheDir, `llama-${options.backend}-${llamaKey(options)}`);
}

/** The folder with llama.cpp compiled the same way before, or "" if there is none. */
export function findSharedLlama(options) {
  if (ownLlamaSource) return "";
  const directory = sharedDir(options);
  return existsSync(join(directory, targetsName)) ? directory : "";
}

/**
 * Keeps the archives of a finished build in the cache, with the target file that CMake exported
 * rewritten to point at them. A rename makes the folder appear whole.
 */
export function shareLlama(options) {
  const exported = join(buildDir, targetsName);
  if (ownLlamaSource || findSharedLlama(options) || !existsSync(exported)) return;
  const incoming = mkdtempSync(join(cacheDir, "incoming-"));
  const target = sharedDir(options);
  try {
    const text = readFileSync(exported, "utf8").replace(
      /(IMPORTED_LOCATION_\w+ )"([^"]+)"/g,
      (_, property, archive) => {
        copyFileSync(archive, join(incoming, basename(archive)));
        return `${property}"${join(target, basename(archive))}"`;
      },
    );
    writeFileSync(join(incoming, targetsName), text);
    renameSync(incoming, target);
  } catch (error) {
    // Another clone was first.
    if (!findSharedLlama(options)) throw error;
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
}
