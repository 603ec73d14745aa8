// What a build for Vulkan needs beside the compiler: headers, the loader, and a glslc that knows what
// llama.cpp's shaders use. That of Debian 12 does not.
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { cacheDir, llamaSource, root } from "./paths.mjs";
import { SetupError, timed } from "./report.mjs";
import { capture, runOrFail } from "./run.mjs";
import { findCargo, findCompiler, findProgram } from "./toolchain.mjs";

const manifest = join(root, "scripts/setup/glslc/Cargo.toml");
const ownBuild = join(cacheDir, "glslc");
const ownGlslc = join(ownBuild, "shaderc/glslc/glslc");
const newestShader = "ggml/src/ggml-vulkan/vulkan-shaders/flash_attn_decode_phase_1.comp";
const feature = "ggml/src/ggml-vulkan/vulkan-shaders/feature-tests/coopmat.comp";

/** Why `glslc` cannot compile llama.cpp's shaders; empty if it can. */
async function fault(glslc) {
  const args = ["-o", "-", "-fshader-stage=compute", "--target-env=vulkan1.3"];
  const { code, output } = await capture(glslc, [...args, join(llamaSource, feature)]);
  return code === 0 ? "" : (/error: .*/.exec(output)?.[0] ?? `it exits with ${code}`);
}

/** The compiler of shaders in the crate's source. Its libraries, parsers and optimizer are in there too. */
async function buildGlslc() {
  const cargo = findCargo();
  if (!cargo)
    throw new SetupError("--fetch-tools fetches glslc's source with cargo: install Rust.");
  const flags = ["--locked", "--manifest-path", manifest];
  await runOrFail("Fetching glslc's source", cargo, ["fetch", ...flags]);
  const metadata = ["metadata", "--format-version", "1", "--offline", ...flags];
  const { packages } = JSON.parse(await runOrFail("cargo metadata", cargo, metadata));
  const crate = packages.find(({ name }) => name === "shaderc-sys");
  const off = ["SHADERC_SKIP_TESTS", "SHADERC_SKIP_EXAMPLES", "SHADERC_SKIP_COPYRIGHT_CHECK"];
  off.push("SPIRV_SKIP_TESTS", "SPIRV_SKIP_EXECUTABLES");
  mkdirSync(cacheDir, { recursive: true });
  await timed("Compiling glslc (some minutes, once)", async () => {
    await runOrFail("Configuring glslc", "cmake", [
      "-S",
      join(dirname(crate.manifest_path), "build"),
      "-B",
      ownBuild,
      ...(findProgram("ninja") ? ["-G", "Ninja"] : []),
      "-DCMAKE_BUILD_TYPE=Release",
      "-DENABLE_GLSLANG_BINARIES=OFF",
      ...off.map((name) => `-D${name}=ON`),
    ]);
    const jobs = process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(availableParallelism());
    await runOrFail("Compiling glslc", "cmake", [
      "--build",
      ownBuild,
      "--parallel",
      jobs,
      "--target",
      "glslc_exe",
    ]);
  });
}

/** A path, or what is wrong with those that are here. */
async function findGlslc(fetchTools) {
  const given = process.env.FERMATA_GLSLC;
  const faults = [];
  for (const path of given ? [given] : [findProgram("glslc"), ownGlslc]) {
    if (path === undefined || !existsSync(path)) continue;
    const reason = await fault(path);
    if (reason === "") return { path };
    faults.push(`${path} (${reason})`);
  }
  if (given && faults.length === 0) return { problem: `FERMATA_GLSLC: there is no ${given}` };
  if (fetchTools && !given) {
    await buildGlslc();
    return { path: ownGlslc };
  }
  return {
    problem:
      faults.length === 0
        ? "glslc, the compiler of Vulkan's shaders: none found"
        : `a newer glslc: ${faults.join(", ")} cannot compile ${newestShader.split("/").pop()}`,
  };
}

// llama.cpp uses this extension of late 2023; Debian 12's headers do not have it.
const vulkanTest = `#include <vulkan/vulkan_core.h>
#if !__has_include(<vulkan/vulkan.hpp>) || !defined(VK_EXT_layer_settings)
#error
#endif
`;
const spirvTest = "#include <spirv/unified1/spirv.hpp>\n";

async function preprocesses(test) {
  const sdk = process.env.VULKAN_SDK;
  const flags = sdk ? `-I${join(sdk, "include")}` : "";
  const { code } = await capture("sh", [
    "-c",
    `printf '%s' "$1" | "$2" ${flags} -E -x c++ - -o /dev/null`,
    "sh",
    test,
    findCompiler(),
  ]);
  return code === 0;
}

/** Options for CMake. @throws SetupError that names all that is missing and where to get it */
export async function findVulkanTools({ fetchTools }) {
  const problems = [];
  if (!(await preprocesses(vulkanTest)))
    problems.push("Vulkan's headers with VK_EXT_layer_settings (2024 or newer), and its loader");
  if (!(await preprocesses(spirvTest))) problems.push("SPIR-V's headers");
  const { path, problem } = await findGlslc(fetchTools && problems.length === 0);
  if (problem) problems.push(problem);
  if (problems.length === 0) return [`--CDVulkan_GLSLC_EXECUTABLE=${path}`];
  throw new SetupError(
    `A build for Vulkan needs what is not here:\n- ${problems.join("\n- ")}\n\n` +
      "Debian, Ubuntu: sudo apt-get install libvulkan-dev spirv-headers glslc\n" +
      "Fedora:         sudo dnf install vulkan-headers vulkan-loader-devel spirv-headers-devel glslc\n" +
      "Arch:           sudo pacman -S vulkan-headers vulkan-icd-loader spirv-headers shaderc\n" +
      "or Vulkan's SDK (https://vulkan.lunarg.com).\n" +
      "Debian 12's headers and glslc are too old: take the SDK there.\n" +
      "Another glslc is named with FERMATA_GLSLC=PATH, or --fetch-tools compiles one\n" +
      "(npm run setup -- --backend vulkan --fetch-tools; needs Rust and Python).",
  );
}
