// The folders that npm packs: one with everything but the addon, and one with the addons of this platform.
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { entries, notBundled } from "../setup/bundle.mjs";
import { root } from "../setup/paths.mjs";
import { npmCommand, runOrFail } from "../setup/run.mjs";

/** `fermata` is another's on npm. */
export const packageName = "fermata-engine";
/** Platforms that have a package. Only those of Linux on x64 were run; the others are made by the same script. */
export const platforms = ["linux-x64", "linux-arm64", "darwin-arm64", "win32-x64"];
const thisPlatform = `${process.platform}-${process.arch}`;

export function platformName() {
  return `${packageName}-${thisPlatform}`;
}

const modelFiles = ["fermata-small.gguf", "manifest.json", "README.md"].map((name) =>
  join("models", name),
);

const source = () => JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

function writeManifest(directory, manifest) {
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/**
 * Of what a user installs.
 * @param others platforms whose packages are made elsewhere: an install asks the registry for each name that is
 *   here, and one that is not published may be anybody's
 */
export function mainManifest(others) {
  const manifest = source();
  const kept = [
    "version",
    "description",
    "license",
    "author",
    "bin",
    "type",
    "exports",
    "peerDependencies",
    "peerDependenciesMeta",
    "engines",
  ];
  return {
    name: packageName,
    ...Object.fromEntries(kept.map((field) => [field, manifest[field]])),
    // The others are in the files of dist/. So npm fetches little, and the versions that were tested.
    dependencies: Object.fromEntries(notBundled.map((name) => [name, manifest.dependencies[name]])),
    files: ["dist", "ui/dist", "models", "LICENCES.md"],
    optionalDependencies: Object.fromEntries(
      [thisPlatform, ...others].map((platform) => [`${packageName}-${platform}`, manifest.version]),
    ),
  };
}

/** What a user installs. */
export function assembleMain(directory, others) {
  rmSync(directory, { recursive: true, force: true });
  for (const part of ["dist", "ui/dist", "LICENSE", "README.md", ...modelFiles])
    cpSync(join(root, part), join(directory, part), { recursive: true, filter: isShipped });
  writeManifest(directory, mainManifest(others));
}

/** Neither stamps, nor maps to sources that are not there, nor modules whose code is in the programs' files. */
function isShipped(path) {
  if (/\.map$|\.fermata-stamp$|\.tsbuildinfo$/.test(path)) return false;
  const [folder, ...rest] = relative(root, path).split(sep);
  if (folder !== "dist" || !path.endsWith(".js")) return true;
  return ["chunks", "client"].includes(rest[0]) || entries.includes(rest.join("/").slice(0, -3));
}

/** The addons themselves are put into it by `addAddon`. */
export function assemblePlatform(directory, levels) {
  const { version, license, author } = source();
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  cpSync(join(root, "LICENSE"), join(directory, "LICENSE"));
  writeManifest(directory, {
    name: platformName(),
    version,
    description: `Fermata's native addon for ${process.platform} on ${process.arch}.`,
    license,
    author,
    os: [process.platform],
    cpu: [process.arch],
    ...(process.platform === "linux" ? { libc: ["glibc"] } : {}),
    files: ["*.node", "LICENCES.md"],
    fermata: { levels: levels.map(({ name, needs }) => ({ file: `${name}.node`, needs })) },
  });
}

/** Returns { file, bytes } of the tarball in `target`. npm gives all files one time, so equal files are equal bytes. */
export async function pack(directory, target) {
  const [npm, args] = npmCommand([
    "pack",
    "--json",
    "--ignore-scripts",
    "--pack-destination",
    target,
  ]);
  const text = await runOrFail(`Packing ${directory}`, npm, args, { cwd: directory });
  const [{ filename }] = Object.values(JSON.parse(/[[{][^]*[\]}]/.exec(text)[0]));
  const file = join(target, filename);
  return { file, bytes: statSync(file).size };
}
