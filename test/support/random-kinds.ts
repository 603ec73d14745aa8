// Tiny models of the kinds that cannot be cut back anywhere, with random weights and the shipped model's vocabulary and
// template.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";
import { aligned, float32, number32, number64, plainText } from "./gguf-bytes.ts";
import {
  inner,
  type Kind,
  layers,
  matrix,
  type Parts,
  parts,
  type Tensor,
  width,
} from "./kind-tensors.ts";

/** Writes it into a temporary folder. @returns its path */
export function writeRandomKind(kind: Kind): string {
  return writeRandom(kind, parts[kind]());
}

/** Of the architecture. */
export function writeRandom(kind: string, { tensors, numbers, hasOutput = false }: Parts): string {
  const source = readFileSync(modelPath);
  const kept = entriesOf(source).filter(({ key }) => key !== "general.architecture");
  const tokens = kept.find(({ key }) => key === "tokenizer.ggml.tokens")!.count;
  const all: Tensor[] = [matrix("token_embd.weight", width, tokens), ...tensors];
  if (hasOutput) all.push(matrix("output.weight", width, tokens));
  const common = {
    block_count: layers,
    context_length: 4096,
    embedding_length: width,
    feed_forward_length: inner,
    vocab_size: tokens,
  };
  const own = [
    Buffer.concat([plainText("general.architecture"), number32(8), plainText(kind)]),
    ...["rms_epsilon", "epsilon"].map((name) =>
      Buffer.concat([
        plainText(`${kind}.attention.layer_norm_${name}`),
        number32(6),
        float32(1e-6),
      ]),
    ),
    ...Object.entries({ ...common, ...numbers }).map(([name, value]) =>
      Array.isArray(value)
        ? Buffer.concat([
            plainText(`${kind}.${name}`),
            number32(9),
            number32(4),
            number64(value.length),
            ...value.map(number32),
          ])
        : Buffer.concat([plainText(`${kind}.${name}`), number32(4), number32(value)]),
    ),
  ];
  const infos: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  const random = generator(42);
  for (const { name, sizes, middle, spread, diagonal = 0 } of all) {
    const length = sizes.reduce((product, size) => product * size, 1);
    const columns = sizes[0]!;
    const values = Float32Array.from({ length }, (_, at) => {
      const added = at % columns === Math.floor(at / columns) ? diagonal : 0;
      return middle + added + spread * (random() * 2 - 1);
    });
    infos.push(
      plainText(name),
      number32(sizes.length),
      ...sizes.map(number64),
      number32(0),
      number64(offset),
    );
    data.push(aligned(Buffer.from(values.buffer)));
    offset += data.at(-1)!.length;
  }
  const head = Buffer.concat([
    Buffer.from("GGUF"),
    number32(3),
    number64(all.length),
    number64(kept.length + own.length),
    ...kept.map(({ bytes }) => bytes),
    ...own,
    ...infos,
  ]);
  const path = join(mkdtempSync(join(tmpdir(), "fermata-kind-")), `${kind}.gguf`);
  writeFileSync(path, Buffer.concat([aligned(head), ...data]));
  return path;
}

/** The metadata of a GGUF file, each entry as its bytes. `count`: of an array. */
function entriesOf(file: Buffer): { key: string; bytes: Buffer; count: number }[] {
  const sizes: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1 };
  let at = 16;
  const long = (): number => Number(file.readBigUInt64LE((at += 8) - 8));
  const short = (): number => file.readUInt32LE((at += 4) - 4);
  const string = (): string => {
    const length = long();
    return file.toString("utf8", at, (at += length));
  };
  const skip = (kind: number): number => {
    if (kind !== 9) {
      if (kind === 8) string();
      else at += sizes[kind] ?? 8;
      return 1;
    }
    const element = short();
    const count = long();
    for (let index = 0; index < count; index++) skip(element);
    return count;
  };
  return Array.from({ length: long() }, () => {
    const start = at;
    const key = string();
    const count = skip(short());
    return { key, bytes: file.subarray(start, at), count };
  });
}

/** From 0 to 1. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
