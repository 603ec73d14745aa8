import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { findDeviceTools } from "../setup/device-tools.mjs";
import { compile } from "../setup/native-build.mjs";
import { nativeKey } from "../setup/native-inputs.mjs";
import { buildDir, llamaSource, root } from "../setup/paths.mjs";
import { timed } from "../setup/report.mjs";
import { runOrFail } from "../setup/run.mjs";
import { readStamp, writeStamp } from "../setup/stamp.mjs";
import { cargoOption } from "../setup/toolchain.mjs";

/** Builds the addon of a level in a tree of its own, unless it is there already, and copies it to `target`. */
export async function buildAddon({ name, sets }, backend, target) {
  const directory = join(root, "build", `release-${name}`);
  const stamp = join(directory, "fermata-release-stamp");
  const addon = join(directory, "Release", "fermata.node");
  const key = nativeKey({ backend, sets });
  if (!existsSync(addon) || readStamp(stamp) !== key) {
    const title = `Building the addon for ${name} (llama.cpp anew: 6 minutes on two cores)`;
    await timed(title, async () => {
      await configure(directory, sets, backend);
      await compile(`Compiling for ${name}`, directory, "fermata");
    });
    writeStamp(stamp, key);
  }
  mkdirSync(join(target, ".."), { recursive: true });
  copyFileSync(addon, target);
}

/** The paths of this machine stand in no file: the same source gives the same addon in another folder. */
async function configure(directory, sets, backend) {
  const flags = `-ffile-prefix-map=${root}=fermata -ffile-prefix-map=${llamaSource}=llama.cpp`;
  const settings = {
    FERMATA_BACKEND: backend,
    // A list in CMake's spelling; without any set, the name of none of them.
    FERMATA_CPU_LEVEL: sets.join(";") || "none",
    FERMATA_STATIC_CXX: "ON",
    FERMATA_BUILD_TESTS: "OFF",
    FERMATA_CARGO_TARGET: join(buildDir, "cargo"),
    LLAMA_CPP_DIR: llamaSource,
    CMAKE_C_FLAGS: flags,
    CMAKE_CXX_FLAGS: flags,
  };
  const args = Object.entries(settings).map(([name, value]) => `--CD${name}=${value}`);
  const cmakeJs = join(root, "node_modules/cmake-js/bin/cmake-js");
  const tools = await findDeviceTools({ backend, fetchTools: false });
  const command = [cmakeJs, "configure", "--out", directory, ...args, cargoOption(), ...tools];
  await runOrFail("Configuring the native build", process.execPath, command, { cwd: root });
}
