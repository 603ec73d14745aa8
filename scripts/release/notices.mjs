// What the packages contain of others: their licences, and a bill of materials.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { bundle, notBundled } from "../setup/bundle.mjs";
import { llamaLock, root } from "../setup/paths.mjs";
import { npmCommand, runOrFail } from "../setup/run.mjs";
import { findCargo } from "../setup/toolchain.mjs";

const crate = join(root, "native/guidance/llguidance");

const locked = () => JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;

/** What is said of the package in this folder: { name, version, licence, folder }. */
function described(folder, { version, license = "not told" }) {
  const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
  return { name, version, licence: license, folder };
}

/** Of the packages that an installation brings along. */
function npmPackages() {
  return [...withTheirs(notBundled)];
}

/** Of the packages whose code is in the programs' files. */
async function programPackages() {
  const packages = locked();
  return (await bundle()).map((folder) => described(folder, packages[folder]));
}

/** Of the packages whose code stands in the web page: those that its source imports, and theirs. */
function pagePackages() {
  const source = join(root, "ui/src");
  const files = readdirSync(source, { recursive: true }).filter((file) => /\.tsx?$/.test(file));
  const imported = files.flatMap((file) => {
    const text = readFileSync(join(source, file), "utf8");
    return [...text.matchAll(/^import (?!type )[^;]*?"((?:@[\w.-]+\/)?[\w-][\w.-]*)[^"]*";$/gm)];
  });
  const found = withTheirs(imported.map(([, name]) => name));
  return found.filter(({ name }) => !name.startsWith("@types/"));
}

/** These packages, and what they depend on. */
function withTheirs(names) {
  const packages = locked();
  const found = new Map();
  const add = (name) => {
    const folder = `node_modules/${name}`;
    const entry = packages[folder];
    if (entry === undefined || found.has(name)) return;
    found.set(name, described(folder, entry));
    const { dependencies = {}, optionalDependencies = {} } = entry;
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies }))
      add(dependency);
  };
  names.forEach(add);
  return [...found.values()];
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
    program: await programPackages(),
    page: pagePackages(),
  };
}

export function licenceList({ native, npm, program, page }) {
  const lines = (list) =>
    list
      .toSorted(byName)
      .map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  const head = ["| name | version | licence |", "| --- | --- | --- |"];
  return [
    "# Licences of what Fermata is made with",
    "## Linked into the addon",
    [...head, ...lines(native)].join("\n"),
    "## Built into the programs",
    [...head, ...lines(program)].join("\n"),
    "## Built into the web page",
    [...head, ...lines(page)].join("\n"),
    "## Installed beside it",
    [...head, ...lines(npm)].join("\n"),
    "## The texts of what is built into the programs and the page",
    ...licenceTexts([...program, ...page]),
    "",
  ].join("\n\n");
}

/** Their licences ask that these texts come along. */
function licenceTexts(packages) {
  const byFolder = new Map(packages.map((one) => [one.folder, one]));
  return [...byFolder.values()].toSorted(byName).map(({ name, version, licence, folder }) => {
    const directory = join(root, folder);
    const file = readdirSync(directory).find((one) => /^(licen[cs]e|copying)/i.test(one));
    const text =
      file === undefined
        ? `It comes without a text; it says that its licence is ${licence}.`
        : readFileSync(join(directory, file), "utf8").trim();
    return `### ${name} ${version}\n\n${text}`;
  });
}

const byName = (a, b) => (a.name < b.name ? -1 : 1);

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
