import { createHash } from "node:crypto";

const blockValues = 32;
const blockBytes = 34;
/** Standard deviation of integers spread evenly over -127..127. */
const quantDeviation = Math.sqrt((127 * 128) / 3);

export function q8Size(count) {
  return (count / blockValues) * blockBytes;
}

/** The bits of a half-precision number between 0 and 1, rounded toward zero. */
function halfBits(value) {
  if (value < 2 ** -14) return Math.floor(value * 2 ** 24);
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | Math.floor((value / 2 ** exponent - 1) * 1024);
}

/** 32 random bits per call (xorshift), the same for the same name on every machine. */
function generatorFor(name) {
  let state = createHash("sha256").update(`fermata ${name}`).digest().readUInt32LE(0) || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  };
}

/**
 * Yields a Q8_0 matrix of `rows` x `columns` in chunks of whole rows. `rowScale(row)` is the
 * standard deviation of that row's weights.
 */
export function* randomQ8(name, rows, columns, rowScale) {
  const next = generatorFor(name);
  const rowBytes = q8Size(columns);
  let scale = 0;
  const chunkRows = Math.max(1, Math.floor((1 << 20) / rowBytes));
  for (let first = 0; first < rows; first += chunkRows) {
    const chunk = Buffer.alloc(Math.min(chunkRows, rows - first) * rowBytes);
    for (let start = 0; start < chunk.length; start += blockBytes) {
      if (start % rowBytes === 0)
        scale = halfBits(rowScale(first + start / rowBytes) / quantDeviation);
      chunk.writeUInt16LE(scale, start);
      for (let index = 2; index < blockBytes; index += 4)
        chunk.writeInt32LE(next() | 0, start + index);
      // ggml never writes -128, and not every kernel expects it.
      for (let index = 2; index < blockBytes; index++) {
        if (chunk[start + index] === 0x80) chunk[start + index] = 0;
      }
    }
    yield chunk;
  }
}

/** Negates the weights of a Q8_0 row and keeps its scales. */
export function negatedRow(row) {
  const negated = Buffer.from(row);
  for (let start = 0; start < row.length; start += blockBytes) {
    for (let index = start + 2; index < start + blockBytes; index++) negated[index] = -row[index];
  }
  return negated;
}

export function onesF32(count) {
  return Buffer.from(new Float32Array(count).fill(1).buffer);
}

/** Evenly between -1 and 1. */
export function randomF32(name, count) {
  const next = generatorFor(name);
  const values = Float32Array.from({ length: count }, () => (next() | 0) / 2 ** 31);
  return Buffer.from(values.buffer);
}
