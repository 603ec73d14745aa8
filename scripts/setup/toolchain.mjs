import { accessSync, constants, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { root } from "./paths.mjs";
import { SetupError, say } from "./report.mjs";
import { capture } from "./run.mjs";

const remedies = {
  linux:
    "Debian, Ubuntu: sudo apt-get install g++ cmake ninja-build git\n" +
    "Fedora:         sudo dnf install gcc-c++ cmake ninja-build git\n" +
    "Arch:           sudo pacman -S gcc cmake ninja git",
  darwin: "xcode-select --install && brew install cmake ninja",
  win32: "Fermata builds on Linux and macOS; on Windows, use WSL.",
};

function fail(problems) {
  const remedy = remedies[process.platform] ?? remedies.linux;
  throw new SetupError(
    `The build needs tools that are not here:\n- ${problems.join("\n- ")}\n\n${remedy}`,
  );
}

export function findProgram(name, path = process.env.PATH ?? "") {
  for (const directory of path.split(delimiter)) {
    const file = join(directory, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}

/** The compiler that CMake will pick: CXX, else the platform's `c++`, `g++` or `clang++`. */
export function findCompiler() {
  const names = process.env.CXX ? [process.env.CXX.split(" ")[0]] : ["c++", "g++", "clang++"];
  for (const name of names) {
    const path = name.includes("/") ? name : findProgram(name);
    if (path) return path;
  }
  return undefined;
}

function isOlder(version, minimum) {
  const [major, minor = 0] = version.split(".").map(Number);
  const [wantedMajor, wantedMinor = 0] = minimum.split(".").map(Number);
  return major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
}

export function checkNode() {
  if (isOlder(process.versions.node, "20.19")) {
    throw new SetupError(`Node.js 20.19 or newer is needed; this is ${process.versions.node}.`);
  }
}

async function compilerProblem() {
  const compiler = findCompiler();
  if (!compiler) return "a C++20 compiler (gcc 11, clang 14 or newer): none found";
  const { output } = await capture(compiler, ["--version"]);
  const clang = /clang version (\d+)/.exec(output);
  const gcc = /(?:gcc|g\+\+|c\+\+|GCC)[^\n]*?\) (\d+)\.\d+/i.exec(output);
  const [kind, version, minimum] = clang ? ["clang", clang[1], "14"] : ["gcc", gcc?.[1], "11"];
  if (version === undefined || !isOlder(version, minimum)) return undefined;
  return `a C++20 compiler: ${compiler} is ${kind} ${version}, ${minimum} or newer is needed`;
}

async function cmakeProblem() {
  const cmake = findProgram("cmake");
  if (!cmake) return "cmake 3.21 or newer: none found";
  const version = /version (\d+\.\d+)/.exec((await capture(cmake, ["--version"])).output)?.[1];
  if (version === undefined || !isOlder(version, "3.21")) return undefined;
  return `cmake 3.21 or newer: ${cmake} is ${version}`;
}

/** Checks all that the native build needs, and names everything that is missing at once. */
export async function checkToolchain() {
  if (process.platform === "win32") fail(["a Unix-like system"]);
  const problems = [await compilerProblem(), await cmakeProblem()];
  if (!findProgram("ninja") && !findProgram("make")) problems.push("ninja or make: neither found");
  if (problems.some(Boolean)) fail(problems.filter(Boolean));
}

/** Where cargo is. */
export function findCargo() {
  const home = process.env.CARGO_HOME || join(homedir(), ".cargo");
  return findProgram("cargo") ?? findProgram("cargo", join(home, "bin"));
}

/** For cmake-js: CMake keeps the cargo that it found once, although a newer one was installed since. */
export function cargoOption() {
  return `--CDCARGO=${findCargo() ?? "CARGO-NOTFOUND"}`;
}

/** Says what a build without a recent cargo lacks; the build goes on. */
export async function remarkOnCargo() {
  const manifest = readFileSync(join(root, "native/guidance/llguidance/Cargo.toml"), "utf8");
  const wanted = /^rust-version = "([^"]+)"/m.exec(manifest)[1];
  const cargo = findCargo();
  const version = cargo && /\d+\.\d+/.exec((await capture(cargo, ["--version"])).output)?.[0];
  if (version && !isOlder(version, wanted)) return;
  say(
    `cargo ${wanted} or newer is not here${version ? ` (${cargo} is ${version})` : ""}: ` +
      "guided decoding will know GBNF grammars only, no JSON schemas.\n" +
      "  To have all of it, install Rust (https://rustup.rs) and run this again.",
  );
}

export function checkGit() {
  if (!findProgram("git")) fail(["git, to unpack llama.cpp's source"]);
}
