// GGUF 3, the little that the benches need: typed metadata values in and out, tensor infos out.

export const kinds = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9, u64: 10 };
export const tensorKinds = { f32: 0, q8_0: 8 };
const alignment = 32;

const fixedSizes = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const readers = {
  [kinds.u32]: (bytes, offset) => bytes.readUInt32LE(offset),
  [kinds.i32]: (bytes, offset) => bytes.readInt32LE(offset),
  [kinds.f32]: (bytes, offset) => bytes.readFloatLE(offset),
  [kinds.bool]: (bytes, offset) => bytes[offset] !== 0,
};

/**
 * Reads the beginning of a GGUF file: metadata as a Map from key to { kind, element, value }, and its tensors as
 * { name, dimensions, kind, size, data }.
 */
export function readHeader(bytes) {
  if (bytes.toString("latin1", 0, 4) !== "GGUF") throw new Error("not a GGUF file");
  let offset = 24;
  const count = Number(bytes.readBigUInt64LE(16));

  const take = (kind) => {
    if (kind === kinds.string) {
      const length = Number(bytes.readBigUInt64LE(offset));
      offset += 8 + length;
      return bytes.toString("utf8", offset - length, offset);
    }
    const value = readers[kind]?.(bytes, offset);
    offset += fixedSizes[kind];
    return value;
  };
  const takeKind = () => take(kinds.u32);
  const takeSize = () => {
    offset += 8;
    return Number(bytes.readBigUInt64LE(offset - 8));
  };

  const metadata = new Map();
  for (let index = 0; index < count; index++) {
    const key = take(kinds.string);
    const kind = takeKind();
    if (kind !== kinds.array) {
      metadata.set(key, { kind, value: take(kind) });
      continue;
    }
    const element = takeKind();
    const length = Number(bytes.readBigUInt64LE(offset));
    offset += 8;
    metadata.set(key, { kind, element, value: Array.from({ length }, () => take(element)) });
  }

  const infos = Array.from({ length: Number(bytes.readBigUInt64LE(8)) }, () => {
    const name = take(kinds.string);
    const dimensions = Array.from({ length: take(kinds.u32) }, takeSize);
    return { name, dimensions, kind: take(kinds.u32), offset: takeSize() };
  });
  const first = alignUp(offset);
  const ends = infos.map((info) => info.offset).toSorted((a, b) => a - b);
  const tensors = infos.map(({ offset: begin, ...info }) => {
    const end = ends.find((each) => each > begin) ?? bytes.length - first;
    return { ...info, size: end - begin, data: bytes.subarray(first + begin, first + end) };
  });
  return { metadata, tensors };
}

function encodeString(text) {
  const bytes = Buffer.from(text, "utf8");
  return Buffer.concat([encodeSize(bytes.length), bytes]);
}

function encodeSize(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function encodeScalar(kind, value) {
  if (kind === kinds.string) return encodeString(value);
  const bytes = Buffer.alloc(fixedSizes[kind]);
  if (kind === kinds.u32) bytes.writeUInt32LE(value);
  else if (kind === kinds.i32) bytes.writeInt32LE(value);
  else if (kind === kinds.f32) bytes.writeFloatLE(value);
  else if (kind === kinds.bool) bytes[0] = value ? 1 : 0;
  else throw new Error(`cannot write GGUF values of kind ${kind}`);
  return bytes;
}

function encodeEntry([key, { kind, element, value }]) {
  const head = [encodeString(key), encodeScalar(kinds.u32, kind)];
  if (kind !== kinds.array) return Buffer.concat([...head, encodeScalar(kind, value)]);
  const items = value.map((item) => encodeScalar(element, item));
  return Buffer.concat([
    ...head,
    encodeScalar(kinds.u32, element),
    encodeSize(value.length),
    ...items,
  ]);
}

export function alignUp(size) {
  return Math.ceil(size / alignment) * alignment;
}

/** The bytes before the tensor data, padded. Each tensor is { name, dimensions, kind, size }. */
export function encodeHeader(metadata, tensors) {
  const version = Buffer.from([0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0]);
  const parts = [version, encodeSize(tensors.length), encodeSize(metadata.size)];
  parts.push(...[...metadata].map(encodeEntry));
  let offset = 0;
  for (const { name, dimensions, kind, size } of tensors) {
    parts.push(encodeString(name), encodeScalar(kinds.u32, dimensions.length));
    parts.push(...dimensions.map(encodeSize));
    parts.push(encodeScalar(kinds.u32, kind), encodeSize(offset));
    offset += alignUp(size);
  }
  const header = Buffer.concat(parts);
  return Buffer.concat([header, Buffer.alloc(alignUp(header.length) - header.length)]);
}
