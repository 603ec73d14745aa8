// The shipped model with other weights: random ones, so that it says anything, or its own in 8 bits.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";
import { generator } from "./random.ts";

const halfFloat = 1;
const q8 = 8;
/** Of Q8_0: so many weights have one scale. */
const blockSize = 32;
const alignment = 32;
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
  /** Where the kind stands in the file; its offset stands behind. */
  kindAt: number;
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
    const kindAt = at;
    const kind = u32();
    const elements = shape.reduce((product, size) => product * size, 1);
    tensors.push({ columns: shape[0] ?? 1, elements, kind, offset: u64(), kindAt });
  }
  return { tensors, start: aligned(at) };
}

const aligned = (size: number): number => Math.ceil(size / alignment) * alignment;

/** Writes the shipped model with its matrices in Q8_0 into a temporary folder. @returns its path */
export function writeQuantizedModel(): string {
  const bytes = readFileSync(modelPath);
  const { tensors, start } = readTensors(bytes);
  const parts: Buffer[] = [bytes.subarray(0, start)];
  let offset = 0;
  for (const { elements, kind, offset: from, kindAt } of tensors) {
    const isMatrix = kind === halfFloat;
    const size = elements * (isMatrix ? 2 : 4);
    const data = bytes.subarray(start + from, start + from + size);
    const part = isMatrix ? quantized(data) : data;
    parts.push(part, Buffer.alloc(aligned(part.length) - part.length));
    if (isMatrix) bytes.writeUInt32LE(q8, kindAt);
    bytes.writeBigUInt64LE(BigInt(offset), kindAt + 4);
    offset += aligned(part.length);
  }
  const path = join(mkdtempSync(join(tmpdir(), "fermata-quantized-")), "q8_0.gguf");
  writeFileSync(path, Buffer.concat(parts));
  return path;
}

/** Half floats as blocks: a half float for the scale, then a signed byte for each. */
function quantized(halves: Buffer): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < halves.length; at += blockSize * 2) {
    const values = Array.from({ length: blockSize }, (_, index) =>
      fromHalf(halves.readUInt16LE(at + index * 2)),
    );
    const scale = Math.max(...values.map(Math.abs)) / 127;
    const block = Buffer.alloc(2 + blockSize);
    block.writeUInt16LE(toHalf(scale));
    for (const [index, value] of values.entries())
      block.writeInt8(scale === 0 ? 0 : Math.round(value / scale), 2 + index);
    blocks.push(block);
  }
  return Buffer.concat(blocks);
}

function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  return (
    sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15))
  );
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
