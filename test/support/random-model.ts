// A model that says anything: the shipped one's vocabulary and shape with random weights.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";

const halfFloat = 1;
const scalarBytes: Record<number, number> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};

interface Tensor {
  columns: number;
  elements: number;
  kind: number;
  offset: number;
}

/** Writes it into a temporary folder. The same `seed` gives the same model. @returns its path */
export function writeRandomModel(seed: number): string {
  const bytes = readFileSync(modelPath);
  const { tensors, start } = readTensors(bytes);
  const random = generator(seed);
  for (const { columns, elements, kind, offset } of tensors) {
    // Norms and biases stay: they keep the numbers in range.
    if (kind !== halfFloat) continue;
    const scale = 2 / Math.sqrt(columns);
    for (let index = 0; index < elements; index++)
      bytes.writeUInt16LE(toHalf((random() * 2 - 1) * scale), start + offset + index * 2);
  }
  const path = join(mkdtempSync(join(tmpdir(), "fermata-random-")), "random.gguf");
  writeFileSync(path, bytes);
  return path;
}

function readTensors(bytes: Buffer): { tensors: Tensor[]; start: number } {
  let at = 8;
  const u32 = (): number => bytes.readUInt32LE((at += 4) - 4);
  const u64 = (): number => Number(bytes.readBigUInt64LE((at += 8) - 8));
  const skipText = (): void => void (at = at + 8 + Number(bytes.readBigUInt64LE(at)));
  const skipValue = (kind: number): void => {
    if (kind === 8) return skipText();
    if (kind !== 9) return void (at += scalarBytes[kind] ?? 0);
    const element = u32();
    const count = u64();
    for (let index = 0; index < count; index++) skipValue(element);
  };
  const tensorCount = u64();
  const pairCount = u64();
  for (let index = 0; index < pairCount; index++) {
    skipText();
    skipValue(u32());
  }
  const tensors: Tensor[] = [];
  for (let index = 0; index < tensorCount; index++) {
    skipText();
    const shape = Array.from({ length: u32() }, u64);
    const kind = u32();
    const elements = shape.reduce((product, size) => product * size, 1);
    tensors.push({ columns: shape[0] ?? 1, elements, kind, offset: u64() });
  }
  return { tensors, start: Math.ceil(at / 32) * 32 };
}

/** Of a small normal number. */
function toHalf(value: number): number {
  const sign = value < 0 ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size < 2 ** -14) return sign;
  const exponent = Math.floor(Math.log2(size));
  const fraction = Math.min(1023, Math.round((size / 2 ** exponent - 1) * 1024));
  return sign | ((exponent + 15) << 10) | fraction;
}

/** Mulberry32: from 0 to 1. */
function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
