// What the packages contain of others: their licences, and a bill of materials.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { llamaLock, root } from "../setup/paths.mjs";
import { npmCommand, runOrFail } from "../setup/run.mjs";
import { findCargo } from "../setup/toolchain.mjs";

const crate = join(root, "native/guidance/llguidance");

/** Of the packages that an installation brings along: { name, version, licence }. */
function npmPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return Object.entries(packages)
    .filter(([path, { dev, peer }]) => path !== "" && !dev && !peer)
    .map(([path, { version, license = "not told" }]) => ({
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      version,
      licence: license,
    }));
}

/** Of the packages whose code stands in the web page: those that its source imports, and theirs. */
function pagePackages() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const source = join(root, "ui/src");
  const files = readdirSync(source, { recursive: true }).filter((file) => /\.tsx?$/.test(file));
  const imported = files.flatMap((file) => {
    const text = readFileSync(join(source, file), "utf8");
    return [...text.matchAll(/^import (?!type )[^;]*?"((?:@[\w.-]+\/)?[\w-][\w.-]*)[^"]*";$/gm)];
  });
  const found = new Map();
  const add = (name) => {
    const entry = packages[`node_modules/${name}`];
    if (entry === undefined || found.has(name)) return;
    const { version, license = "not told", dependencies = {} } = entry;
    found.set(name, { name, version, licence: license });
    for (const dependency of Object.keys(dependencies)) add(dependency);
  };
  for (const [, name] of imported) add(name);
  return [...found.values()].filter(({ name }) => !name.startsWith("@types/"));
}

/** Of the crates that are linked into the addon. */
async function crates() {
  const args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", rustTarget()];
  const cargo = findCargo();
  if (!cargo) return [];
  const text = await runOrFail("Listing the crates", cargo, args, { cwd: crate });
  const { packages } = JSON.parse(text.slice(text.indexOf("{")));
  return packages
    .filter(({ source }) => source !== null)
    .map(({ name, version, license }) => ({ name, version, licence: license ?? "not told" }));
}

function rustTarget() {
  const architecture = process.arch === "arm64" ? "aarch64" : "x86_64";
  const systems = { darwin: "apple-darwin", win32: "pc-windows-msvc" };
  return `${architecture}-${systems[process.platform] ?? "unknown-linux-gnu"}`;
}

export async function components() {
  return {
    native: [{ name: "llama.cpp", version: llamaLock.commit, licence: "MIT" }, ...(await crates())],
    npm: npmPackages(),
    page: pagePackages(),
  };
}

export function licenceList({ native, npm, page }) {
  const lines = (list) =>
    list
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  const head = ["| name | version | licence |", "| --- | --- | --- |"];
  return [
    "# Licences of what Fermata is made with",
    "## Linked into the addon",
    [...head, ...lines(native)].join("\n"),
    "## Built into the web page",
    [...head, ...lines(page)].join("\n"),
    "## Installed beside it",
    [...head, ...lines(npm)].join("\n"),
    "",
  ].join("\n\n");
}

/** CycloneDX: npm's own, with what is linked into the addon and built into the page. */
export async function billOfMaterials({ native, page }) {
  const args = ["sbom", "--omit", "dev", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const [npm, npmArgs] = npmCommand(args);
  const text = await runOrFail("Listing the packages", npm, npmArgs, { cwd: root });
  const bill = JSON.parse(text.slice(text.indexOf("{")));
  // Random and of this moment: two releases of one source would differ.
  delete bill.serialNumber;
  delete bill.metadata.timestamp;
  const linked = [...native, ...page].map(({ name, version, licence }) => ({
    type: "library",
    name,
    version,
    licenses: [{ expression: licence.replaceAll("/", " OR ") }],
  }));
  bill.components.push(...linked);
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}

export function sha256(file) {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
