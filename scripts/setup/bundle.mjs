#!/usr/bin/env node
// Puts each program of dist/ into few files, together with the packages that it imports: a start that reads 700 modules
// spends most of its time on finding and linking them. tsc has made dist/ before, module by module, for its types and for
// tests; this replaces the files that are started or imported from outside. Run by itself by `npm run build`.
import { relative, sep } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { distDir, root } from "./paths.mjs";

/** Files that Node starts, as processes and threads, and the library. src/client is for browsers and needs nothing. */
export const entries = [
  "index",
  "cli/main",
  "cli/run",
  "cli/worker",
  "guidance/schema-worker",
  "store/sqlite/store-worker",
];
/** With native code of its own: an installation brings it along. */
export const notBundled = ["libsql"];
/** Packages that work better with it, and are not ours to install. */
const optional = ["pg-native"];

/** @returns the folders of the packages whose code is in the files, as package-lock.json has them */
export async function bundle() {
  // It is there only after the setup of packages.
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(entries.map((name) => [name, `src/${name}.ts`])),
    external: [...notBundled, ...optional],
  });
  const { output } = await build.write({
    dir: distDir,
    format: "esm",
    sourcemap: true,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
  });
  await build.close();
  const modules = output.flatMap(({ moduleIds = [] }) => moduleIds);
  return [...new Set(modules.flatMap((path) => packageOf(path) ?? []))].toSorted();
}

function packageOf(path) {
  const parts = relative(root, path).split(sep);
  const at = parts.lastIndexOf("node_modules");
  if (at < 0) return undefined;
  const name = parts[at + 1];
  return parts.slice(0, at + (name.startsWith("@") ? 3 : 2)).join("/");
}

if (argv[1] === fileURLToPath(import.meta.url)) await bundle();
