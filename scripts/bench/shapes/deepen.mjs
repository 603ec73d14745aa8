import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fetchRealModel } from "../../real/models.mjs";
import { cacheDir } from "../../setup/paths.mjs";
import { timed } from "../../setup/report.mjs";
import { filesUnder, hashOf, readStamp, writeStamp } from "../../setup/stamp.mjs";
import { alignUp, encodeHeader, readHeader } from "./gguf-header.mjs";

/**
 * A model and a smaller one that drafts for it, where no real pair can be had: behind the real model's layers come
 * copies of them that add nothing, because what they would add is multiplied by zeros. It says what the real one says,
 * for so many times the work.
 */
export const deepModels = { "smollm2-deep": { of: "smollm2", times: 8 } };

/** The last of a layer's products: what it adds comes out of them. */
const adds = /\.(attn_output|ffn_down)\.weight$/;

function* deepTensors(tensors, layers, times) {
  yield* tensors;
  for (let copy = 1; copy < times; copy++) {
    for (const tensor of tensors) {
      const { layer, part } = /^blk\.(?<layer>\d+)(?<part>\..*)$/.exec(tensor.name)?.groups ?? {};
      if (layer === undefined) continue;
      const data = adds.test(tensor.name) ? Buffer.alloc(tensor.size) : tensor.data;
      yield { ...tensor, name: `blk.${Number(layer) + copy * layers}${part}`, data };
    }
  }
}

function writeDeep(path, source, times) {
  const { metadata, tensors } = readHeader(readFileSync(source));
  const architecture = metadata.get("general.architecture").value;
  const depth = metadata.get(`${architecture}.block_count`);
  const all = [...deepTensors(tensors, depth.value, times)];
  metadata.set(`${architecture}.block_count`, { ...depth, value: depth.value * times });
  const file = openSync(path, "w");
  try {
    writeSync(file, encodeHeader(metadata, all));
    for (const { data, size } of all) {
      writeSync(file, data);
      writeSync(file, Buffer.alloc(alignUp(size) - size));
    }
  } finally {
    closeSync(file);
  }
}

/** Makes its GGUF, unless the cache has it; returns { path, draftModel }, paths of both. */
export async function makeDeepModel(name) {
  const { of, times } = deepModels[name];
  const draftModel = await fetchRealModel(of);
  const path = join(cacheDir, "bench", `${name}.gguf`);
  const key = hashOf(filesUnder(dirname(fileURLToPath(import.meta.url))), [of, times]);
  const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined;
  if (isThere && readStamp(`${path}.stamp`) === key) return { path, draftModel };
  mkdirSync(dirname(path), { recursive: true });
  return timed(`Writing ${name}`, async () => {
    writeDeep(`${path}.incoming`, draftModel, times);
    renameSync(`${path}.incoming`, path);
    writeStamp(`${path}.stamp`, key);
    return { path, draftModel };
  });
}
