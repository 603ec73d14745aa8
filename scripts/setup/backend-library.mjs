// llama.cpp's backends for devices as node-llama-cpp compiled them for the release that is pinned: the addon loads
// one that FERMATA_BACKEND_LIBRARY names. So a device is tried without the backend's compiler, which takes an hour.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { downloadPackage } from "./npm-package.mjs";
import { cacheDir, llamaLock } from "./paths.mjs";
import { SetupError, timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";

const pinnedBy = "scripts/setup/backend-library.mjs";

/** Of version 3.22.1; pinned anew together with scripts/llama-cpp.lock.json. */
const integrities = {
  vulkan:
    "sha512-bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg==",
};

/** The library's path. */
export async function fetchBackendLibrary(backend) {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new SetupError(`A compiled ${backend} backend is fetched on Linux x86-64 only.`);
  const folder = join(cacheDir, `${backend}-${llamaLock.tag}`);
  const library = join(folder, `libggml-${backend}.so`);
  if (existsSync(library)) return library;
  mkdirSync(cacheDir, { recursive: true });
  const incoming = mkdtempSync(join(cacheDir, "incoming-"));
  const spec = `@node-llama-cpp/linux-x64-${backend}@${llamaLock.version}`;
  try {
    await timed(`Fetching ${spec}`, async () => {
      const archive = await downloadPackage(spec, integrities[backend], incoming, pinnedBy);
      const bins = `package/bins/linux-x64-${backend}`;
      await runOrFail("Unpacking", "tar", ["-xzf", archive, "-C", incoming, bins]);
      rmSync(folder, { recursive: true, force: true });
      renameSync(join(incoming, bins), folder);
    });
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
  return library;
}
