/** Header, metadata and tensor table of a GGUF file, with the storage of each tensor type. */

import type { GgufCursor } from "./gguf-cursor.ts";

/** Long arrays (vocabularies) are measured, not read. */
interface GgufArray {
  length: number;
}

export type GgufValue = number | bigint | boolean | string | GgufArray;

export interface GgufHeader {
  metadata: Map<string, GgufValue>;
  tensorCount: number;
  /** It has the weights that turn a pair of texts into a score. */
  ranks: boolean;
  /** For how many positions it has learned weights. Undefined: it computes them, for any number. */
  positions: number | undefined;
  /** Where the file must end at the earliest. */
  end: number;
}

const typeBool = 7;
const typeString = 8;
const typeArray = 9;

/** By type id: the bytes of a number, and how it is read. */
const numbers: Record<number, readonly [size: number, read: (bytes: Buffer) => number | bigint]> = {
  0: [1, (bytes) => bytes.readUInt8()],
  1: [1, (bytes) => bytes.readInt8()],
  2: [2, (bytes) => bytes.readUInt16LE()],
  3: [2, (bytes) => bytes.readInt16LE()],
  4: [4, (bytes) => bytes.readUInt32LE()],
  5: [4, (bytes) => bytes.readInt32LE()],
  6: [4, (bytes) => bytes.readFloatLE()],
  10: [8, (bytes) => bytes.readBigUInt64LE()],
  11: [8, (bytes) => bytes.readBigInt64LE()],
  12: [8, (bytes) => bytes.readDoubleLE()],
};

// The least bytes that a key with its value, and a tensor's entry, can take.
const minimumPairBytes = 8 + 1 + 4 + 1;
const minimumTensorBytes = 8 + 4 + 4 + 8;
// Models have some dozens of the first, some thousands of the second.
const maximumPairs = 2 ** 16;
const maximumTensors = 2 ** 18;
const maximumDimensions = 4;
const maximumNameBytes = 63;
const defaultAlignment = 32;

/**
 * Reads header, metadata and tensor table, by the rules of llama.cpp's reader, which demands that
 * tensors follow each other without gaps.
 * @throws FermataError model_invalid
 */
export function readGgufHeader(cursor: GgufCursor): GgufHeader {
  if (cursor.remaining < 4 || cursor.bytes(4).toString("latin1") !== "GGUF") {
    throw cursor.damaged("it does not begin with GGUF, so it is no GGUF model");
  }
  const version = cursor.u32();
  if ((version & 0xffff) === 0) throw cursor.damaged("its byte order is not this machine's");
  if (version !== 2 && version !== 3) throw cursor.damaged(`it has GGUF version ${version}`);
  const tensorCount = cursor.u64();
  const pairCount = cursor.u64();
  const leastBytes = pairCount * minimumPairBytes + tensorCount * minimumTensorBytes;
  const areTooMany = pairCount > maximumPairs || tensorCount > maximumTensors;
  if (areTooMany || leastBytes > cursor.remaining) {
    throw cursor.damaged(`it claims ${pairCount} metadata entries and ${tensorCount} tensors`);
  }
  const metadata = readMetadata(cursor, pairCount);
  const table = readTensorTable(cursor, tensorCount, alignmentOf(cursor, metadata));
  return { metadata, tensorCount, ...table };
}

function readMetadata(cursor: GgufCursor, count: number): Map<string, GgufValue> {
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < count; index++) {
    const key = cursor.string();
    if (key === "" || metadata.has(key)) {
      throw cursor.damaged(`its metadata entry ${index} has no name of its own`);
    }
    metadata.set(key, readValue(cursor, key));
  }
  return metadata;
}

function readValue(cursor: GgufCursor, key: string): GgufValue {
  const type = cursor.u32();
  switch (type) {
    case typeString:
      return cursor.string();
    case typeArray:
      return readArray(cursor, key);
    case typeBool:
      return cursor.u8() !== 0;
    default:
      return readNumber(cursor, type, key);
  }
}

function readNumber(cursor: GgufCursor, type: number, key: string): number | bigint {
  const number = numbers[type];
  if (number === undefined)
    throw cursor.damaged(`the metadata entry ${shown(key)} has type ${type}`);
  const [size, read] = number;
  return read(cursor.bytes(size));
}

function readArray(cursor: GgufCursor, key: string): GgufArray {
  const type = cursor.u32();
  const length = cursor.u64();
  const size = type === typeString ? 8 : type === typeBool ? 1 : numbers[type]?.[0];
  if (size === undefined) throw cursor.damaged(`the metadata list ${shown(key)} has type ${type}`);
  if (length * size > cursor.remaining) {
    throw cursor.damaged(`the metadata list ${shown(key)} claims ${length} entries`);
  }
  if (type === typeString) {
    for (let index = 0; index < length; index++) cursor.skipString();
  } else {
    cursor.skip(length * size);
  }
  return { length };
}

function alignmentOf(cursor: GgufCursor, metadata: Map<string, GgufValue>): number {
  const alignment = metadata.get("general.alignment") ?? defaultAlignment;
  if (typeof alignment !== "number" || alignment < 1 || (alignment & (alignment - 1)) !== 0) {
    throw cursor.damaged("its alignment is no power of two");
  }
  return alignment;
}

const classifiers = ["cls.weight", "cls.output.weight"];
const learnedPositions = "position_embd.weight";

/** `end`: where the last tensor's data ends in the file. */
function readTensorTable(
  cursor: GgufCursor,
  count: number,
  alignment: number,
): Pick<GgufHeader, "end" | "ranks" | "positions"> {
  const shapes = new Map<string, number[]>();
  let expectedOffset = 0;
  let dataBytes = 0;
  for (let index = 0; index < count; index++) {
    const name = cursor.string();
    if (shapes.has(name) || Buffer.byteLength(name) > maximumNameBytes) {
      throw cursor.damaged(`its tensor ${index} has no proper name`);
    }
    const { shape, bytes } = readTensorShape(cursor, name);
    shapes.set(name, shape);
    const offset = cursor.u64();
    if (offset !== expectedOffset) {
      throw cursor.damaged(
        `the tensor ${shown(name)} is at ${offset} instead of ${expectedOffset}`,
      );
    }
    dataBytes = offset + bytes;
    expectedOffset = padded(dataBytes, alignment);
  }
  const end = count === 0 ? cursor.position : padded(cursor.position, alignment) + dataBytes;
  return {
    end,
    ranks: classifiers.some((name) => shapes.has(name)),
    positions: shapes.get(learnedPositions)?.[1],
  };
}

function readTensorShape(cursor: GgufCursor, name: string): { shape: number[]; bytes: number } {
  const dimensionCount = cursor.u32();
  if (dimensionCount > maximumDimensions) {
    throw cursor.damaged(`the tensor ${shown(name)} has ${dimensionCount} dimensions`);
  }
  const shape = Array.from({ length: dimensionCount }, () => cursor.u64());
  const type = cursor.u32();
  const bytes = tensorBytes(type, shape);
  if (bytes === undefined || !Number.isSafeInteger(bytes)) {
    throw cursor.damaged(
      `the tensor ${shown(name)} of type ${type} cannot have shape ${shape.join(" x ")}`,
    );
  }
  return { shape, bytes };
}

/** A name of the file in an error: short, and nothing that a terminal obeys. */
function shown(name: string): string {
  return name.slice(0, maximumNameBytes).replaceAll(/\p{C}/gu, "?");
}

function padded(size: number, alignment: number): number {
  return Math.ceil(size / alignment) * alignment;
}

/** Storage of ggml's tensor types: values per block and bytes per block, by type id. */
const blocks: Record<number, readonly [values: number, bytes: number]> = {
  0: [1, 4], // f32
  1: [1, 2], // f16
  2: [32, 18], // q4_0
  3: [32, 20], // q4_1
  6: [32, 22], // q5_0
  7: [32, 24], // q5_1
  8: [32, 34], // q8_0
  9: [32, 36], // q8_1
  10: [256, 84], // q2_K
  11: [256, 110], // q3_K
  12: [256, 144], // q4_K
  13: [256, 176], // q5_K
  14: [256, 210], // q6_K
  15: [256, 292], // q8_K
  16: [256, 66], // iq2_xxs
  17: [256, 74], // iq2_xs
  18: [256, 98], // iq3_xxs
  19: [256, 50], // iq1_s
  20: [32, 18], // iq4_nl
  21: [256, 110], // iq3_s
  22: [256, 82], // iq2_s
  23: [256, 136], // iq4_xs
  24: [1, 1], // i8
  25: [1, 2], // i16
  26: [1, 4], // i32
  27: [1, 8], // i64
  28: [1, 8], // f64
  29: [256, 56], // iq1_m
  30: [1, 2], // bf16
  34: [256, 54], // tq1_0
  35: [256, 66], // tq2_0
  39: [32, 17], // mxfp4
  40: [64, 36], // nvfp4
  41: [128, 18], // q1_0
  42: [64, 18], // q2_0
};

/**
 * Bytes of a tensor of this shape, first dimension first. Undefined: the type is unknown or the rows
 * are not whole blocks.
 */
function tensorBytes(type: number, shape: readonly number[]): number | undefined {
  const block = blocks[type];
  if (!block || (shape[0] ?? 1) % block[0] !== 0) return undefined;
  return (shape.reduce((product, size) => product * size, 1) / block[0]) * block[1];
}
