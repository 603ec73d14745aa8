import { createHash } from "node:crypto";
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
import { cacheDir, llamaSource } from "../../setup/paths.mjs";
import { timed } from "../../setup/report.mjs";
import { filesUnder, hashOf, readStamp, writeStamp } from "../../setup/stamp.mjs";
import { alignUp, encodeHeader, tensorKinds } from "./gguf-header.mjs";
import { metadataOf, vocabularyFiles } from "./metadata.mjs";
import { negatedRow, onesF32, q8Size, randomF32, randomQ8 } from "./random-weights.mjs";
import { tensorsOf } from "./shape.mjs";

const quietScale = 1 / 64;
const logitDeviation = 4;

/**
 * The embedding is also the output. Rows of all tokens but the digits are small, and digits come in
 * pairs of opposite sign, so that the greatest logit is nearly always a digit's. A model that speaks
 * digits never ends its turn, and its text comes back from every client as the same tokens.
 */
function* embedding({ name, rows, columns }, tokens) {
  const digitIds = Array.from({ length: 10 }, (_, digit) => tokens.indexOf(String(digit)));
  const loud = logitDeviation / Math.sqrt(columns);
  const scale = (row) => (digitIds.includes(row) ? loud : loud * quietScale);
  const rowBytes = q8Size(columns);
  let first = 0;
  for (const chunk of randomQ8(name, rows, columns, scale)) {
    const rowAt = (id) => chunk.subarray((id - first) * rowBytes, (id - first + 1) * rowBytes);
    // All digits stand in the first chunk.
    for (let digit = 0; first === 0 && digit < 10; digit += 2) {
      negatedRow(rowAt(digitIds[digit])).copy(rowAt(digitIds[digit + 1]));
    }
    yield chunk;
    first += chunk.length / rowBytes;
  }
}

function contentOf(tensor, tokens) {
  if (!tensor.columns) return [onesF32(tensor.rows)];
  if (tensor.name === "token_embd.weight") return embedding(tensor, tokens);
  if (tensor.f32) return [randomF32(tensor.name, tensor.rows * tensor.columns)];
  return randomQ8(tensor.name, tensor.rows, tensor.columns, () => 1 / Math.sqrt(tensor.columns));
}

function infoOf({ name, rows, columns, f32 = false }) {
  if (f32)
    return { name, dimensions: [columns, rows], kind: tensorKinds.f32, size: rows * columns * 4 };
  return columns
    ? { name, dimensions: [columns, rows], kind: tensorKinds.q8_0, size: q8Size(rows * columns) }
    : { name, dimensions: [rows], kind: tensorKinds.f32, size: rows * 4 };
}

/** Streams the file to disk and returns its SHA-256. */
function writeModel(path, shape) {
  const metadata = metadataOf(shape, llamaSource);
  const tokens = metadata.get("tokenizer.ggml.tokens").value;
  const tensors = tensorsOf(shape, tokens.length);
  const hash = createHash("sha256");
  const file = openSync(path, "w");
  const write = (bytes) => {
    hash.update(bytes);
    writeSync(file, bytes);
  };
  try {
    write(encodeHeader(metadata, tensors.map(infoOf)));
    for (const tensor of tensors) {
      for (const chunk of contentOf(tensor, tokens)) write(chunk);
      const { size } = infoOf(tensor);
      write(Buffer.alloc(alignUp(size) - size));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}

/** Makes the shape's GGUF, unless the cache has it; returns { path, sha256 }. */
export async function makeShape(shape) {
  const path = join(cacheDir, "bench", `${shape.name}-q8_0.gguf`);
  const recipe = filesUnder(dirname(fileURLToPath(import.meta.url)));
  const vocabulary = vocabularyFiles(llamaSource).map((file) => readFileSync(file, "base64"));
  const key = hashOf(recipe, [shape, vocabulary]);
  const [stampedKey, sha256, size] = (readStamp(`${path}.stamp`) ?? "").split(" ");
  const bytes = statSync(path, { throwIfNoEntry: false })?.size;
  if (stampedKey === key && Number(size) === bytes) return { path, sha256 };

  mkdirSync(dirname(path), { recursive: true });
  return timed(`Writing the ${shape.name} shape`, async () => {
    const incoming = `${path}.incoming`;
    const written = writeModel(incoming, shape);
    renameSync(incoming, path);
    writeStamp(`${path}.stamp`, `${key} ${written} ${statSync(path).size}`);
    return { path, sha256: written };
  });
}
