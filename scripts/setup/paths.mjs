import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(fileURLToPath(import.meta.url), "../../..");
export const buildDir = join(root, "build");
export const addonPath = join(buildDir, "Release", "fermata.node");
export const distDir = join(root, "dist");
export const llamaLock = JSON.parse(
  readFileSync(join(root, "scripts/llama-cpp.lock.json"), "utf8"),
);

const sharedCache = process.env.FERMATA_SETUP_CACHE;
export const cacheDir = sharedCache ? resolve(sharedCache) : join(root, ".cache");

/** Set when the user brings a llama.cpp of their own; it is then used as it is. */
export const ownLlamaSource = process.env.LLAMA_CPP_DIR && resolve(process.env.LLAMA_CPP_DIR);

// In a shared cache, clones that pin different versions must not replace each other's source.
export const llamaSource =
  ownLlamaSource ??
  join(cacheDir, sharedCache ? `llama.cpp-${llamaLock.commit.slice(0, 12)}` : "llama.cpp");
