#!/usr/bin/env node
// npm run test:exactness: is reuse of the KV cache exact, on the model that ships, on SmolLM2 and on
// the bench's 135M shape? What "exact" means stands in test/native/llama_exactness.cpp.
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { shapes } from "../bench/shapes/shape.mjs";
import { makeShape } from "../bench/shapes/make-shape.mjs";
import { fetchRealModel } from "../real/models.mjs";
import { setUpEngine } from "../setup.mjs";
import { compile } from "../setup/native-build.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { buildDir, root } from "../setup/paths.mjs";
import { exitOnSetupError, timed } from "../setup/report.mjs";
import { capture, runOrFail } from "../setup/run.mjs";

const program = (name) => join(buildDir, "test", name);

async function asF32(model) {
  const path = model.replace(/\.gguf$/, ".as-f32.gguf");
  if (!existsSync(path)) {
    await timed(`Writing ${path}`, async () => {
      await runOrFail("as_f32", program("as_f32"), [model, `${path}.incoming`]);
      renameSync(`${path}.incoming`, path);
    });
  }
  return path;
}

try {
  await setUpEngine(takeSetupOptions([]).options);
  await compile("Compiling", buildDir, "llama_exactness");
  await compile("Compiling", buildDir, "as_f32");
  const smollm2 = await asF32(await fetchRealModel("smollm2"));
  const random = await asF32((await makeShape(shapes["135M"])).path);
  const models = [join(root, "models/fermata-small.gguf"), smollm2, random];
  const show = (line) => process.stdout.write(`${line}\n`);
  const { code } = await capture(program("llama_exactness"), models, { cwd: root, onLine: show });
  process.exitCode = code;
} catch (error) {
  exitOnSetupError(error);
}
