// The model that ships, with a pooling in its metadata: an embedding model whose vectors mean little,
// but which takes the whole way. Named as what it is.
import { readFile, writeFile } from "node:fs/promises";
import { modelPath } from "./engine.ts";
import { number32, number64, plainText } from "./gguf-bytes.ts";

const types = { u32: 4, bool: 7, string: 8 };
const poolings = { none: 0, mean: 1, cls: 2, last: 3, rank: 4 };

/** `pre`: what its vocabulary's words are. `lacksBos`: it wants a token before each text, and has none. */
export async function writeEmbeddingModel(
  path: string,
  pooling: keyof typeof poolings,
  { pre, lacksBos = false }: { pre?: string; lacksBos?: boolean } = {},
): Promise<string> {
  const source = await readFile(modelPath);
  const architecture = /general\.architecture[^]{4}[^]{8}([a-z0-9]+)/.exec(
    source.toString("latin1", 0, 4096),
  )?.[1];
  const entry = [
    plainText(`${architecture}.pooling_type`),
    number32(types.u32),
    number32(poolings[pooling]),
  ];
  const leaveOut = (key: string): void =>
    void source.write("test.tokenizer", source.indexOf(`tokenizer.ggml.${key}`));
  if (pre !== undefined) {
    leaveOut("pre");
    entry.push(plainText("tokenizer.ggml.pre"), number32(types.string), plainText(pre));
  }
  if (lacksBos) {
    leaveOut("bos_token_id");
    const adds = "tokenizer.ggml.add_bos_token";
    source.writeUInt8(1, source.indexOf(adds) + adds.length + number32(types.bool).length);
  }
  // What is put in is a multiple of the alignment: the weights stay aligned.
  const used = Buffer.concat([
    ...entry,
    plainText("test.padding"),
    number32(types.string),
    number64(0),
  ]).length;
  const padding = plainText(" ".repeat((32 - (used % 32)) % 32));
  const added = Buffer.concat([
    ...entry,
    plainText("test.padding"),
    number32(types.string),
    padding,
  ]);
  const head = Buffer.from(source.subarray(0, 24));
  head.writeBigUInt64LE(head.readBigUInt64LE(16) + (pre === undefined ? 2n : 3n), 16);
  await writeFile(path, Buffer.concat([head, added, source.subarray(24)]));
  return path;
}
