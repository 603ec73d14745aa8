import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { downloadPackage } from "./npm-package.mjs";
import { cacheDir, llamaLock, llamaSource, ownLlamaSource } from "./paths.mjs";
import { SetupError, timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { readStamp, writeStamp } from "./stamp.mjs";
import { checkGit } from "./toolchain.mjs";

const stampName = "fermata-stamp";

function download(directory) {
  const { package: name, version, integrity } = llamaLock;
  return downloadPackage(`${name}@${version}`, integrity, directory, "scripts/llama-cpp.lock.json");
}

async function unpack(archive, directory) {
  const source = join(directory, "source");
  const quiet = ["-c", "advice.detachedHead=false", "-c", "core.autocrlf=false"];
  await runOrFail("Unpacking llama.cpp", "tar", [
    "-xzf",
    archive,
    "-C",
    directory,
    llamaLock.bundle,
  ]);
  const bundle = join(directory, llamaLock.bundle);
  await runOrFail("git clone", "git", [
    ...quiet,
    "clone",
    "--quiet",
    "--no-checkout",
    bundle,
    source,
  ]);
  await runOrFail("git checkout", "git", [...quiet, "checkout", "--quiet", llamaLock.commit], {
    cwd: source,
  });
  writeStamp(join(source, stampName), llamaLock.commit);
  return source;
}

/** Leaves llama.cpp's pinned source in `llamaSource`: whole, or not at all. */
export async function setUpLlamaSource() {
  if (ownLlamaSource) {
    if (existsSync(join(ownLlamaSource, "include/llama.h"))) return;
    throw new SetupError(`LLAMA_CPP_DIR is ${ownLlamaSource}, which holds no llama.cpp source.`);
  }
  if (readStamp(join(llamaSource, stampName)) === llamaLock.commit) return;
  checkGit();
  mkdirSync(cacheDir, { recursive: true });
  const directory = mkdtempSync(join(cacheDir, "incoming-"));
  try {
    await timed(`Fetching llama.cpp ${llamaLock.tag}`, async () => {
      const source = await unpack(await download(directory), directory);
      rmSync(llamaSource, { recursive: true, force: true });
      renameSync(source, llamaSource);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
