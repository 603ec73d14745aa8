// Tiny models of the kinds that cannot be cut back anywhere, with random weights and the shipped model's vocabulary and
// template. The same architectures as test/native/random_models.h.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelPath } from "./engine.ts";

export const kinds = ["gemma3", "lfm2", "mamba2"] as const;
export type Kind = (typeof kinds)[number];

const layers = 6;
const width = 64;
const inner = 128;
const heads = 4;
const kvHeads = 2;
const headSize = 16;
const alignment = 32;

interface Tensor {
  name: string;
  sizes: number[];
  middle: number;
  spread: number;
}

/** Writes it into a temporary folder. @returns its path */
export function writeRandomKind(kind: Kind): string {
  const source = readFileSync(modelPath);
  const kept = entriesOf(source).filter(({ key }) => key !== "general.architecture");
  const tokens = kept.find(({ key }) => key === "tokenizer.ggml.tokens")!.count;
  const { tensors, numbers } = parts[kind]();
  const all: Tensor[] = [matrix("token_embd.weight", width, tokens), ...tensors];
  const common = {
    block_count: layers,
    context_length: 4096,
    embedding_length: width,
    feed_forward_length: inner,
    vocab_size: tokens,
  };
  const own = [
    Buffer.concat([text("general.architecture"), u32(8), text(kind)]),
    Buffer.concat([text(`${kind}.attention.layer_norm_rms_epsilon`), u32(6), f32(1e-6)]),
    ...Object.entries({ ...common, ...numbers }).map(([name, value]) =>
      Array.isArray(value)
        ? Buffer.concat([
            text(`${kind}.${name}`),
            u32(9),
            u32(4),
            u64(value.length),
            ...value.map(u32),
          ])
        : Buffer.concat([text(`${kind}.${name}`), u32(4), u32(value)]),
    ),
  ];
  const infos: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  const random = generator(42);
  for (const { name, sizes, middle, spread } of all) {
    const length = sizes.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length }, () => middle + spread * (random() * 2 - 1));
    infos.push(text(name), u32(sizes.length), ...sizes.map(u64), u32(0), u64(offset));
    data.push(padded(Buffer.from(values.buffer)));
    offset += data.at(-1)!.length;
  }
  const head = Buffer.concat([
    Buffer.from("GGUF"),
    u32(3),
    u64(all.length),
    u64(kept.length + own.length),
    ...kept.map(({ bytes }) => bytes),
    ...own,
    ...infos,
  ]);
  const path = join(mkdtempSync(join(tmpdir(), "fermata-kind-")), `${kind}.gguf`);
  writeFileSync(path, Buffer.concat([padded(head), ...data]));
  return path;
}

interface Parts {
  tensors: Tensor[];
  /** Of the metadata, without the architecture's name. */
  numbers: Record<string, number | number[]>;
}

const each = (of: (block: string, layer: number) => Tensor[]): Tensor[] =>
  Array.from({ length: layers }, (_, layer) => of(`blk.${layer}.`, layer)).flat();

const parts: Record<Kind, () => Parts> = {
  gemma3: () => ({
    numbers: {
      "attention.head_count": heads,
      "attention.head_count_kv": kvHeads,
      "attention.key_length": headSize,
      "attention.value_length": headSize,
      "attention.sliding_window": 48,
    },
    tensors: [
      norm("output_norm.weight", width),
      ...each((block) => [
        norm(`${block}attn_norm.weight`, width),
        ...attention(block),
        norm(`${block}post_attention_norm.weight`, width),
        ...feedForward(block),
        norm(`${block}post_ffw_norm.weight`, width),
      ]),
    ],
  }),
  lfm2: () => {
    const hasAttention = (layer: number): boolean => layer % 3 === 2;
    return {
      numbers: {
        "attention.head_count": heads,
        "attention.head_count_kv": Array.from({ length: layers }, (_, layer) =>
          hasAttention(layer) ? kvHeads : 0,
        ),
        "shortconv.l_cache": 3,
      },
      tensors: [
        norm("token_embd_norm.weight", width),
        ...each((block, layer) => [
          norm(`${block}attn_norm.weight`, width),
          ...feedForward(block),
          ...(hasAttention(layer)
            ? attention(block)
            : [
                matrix(`${block}shortconv.conv.weight`, 3, width),
                matrix(`${block}shortconv.in_proj.weight`, width, 3 * width),
                matrix(`${block}shortconv.out_proj.weight`, width, width),
              ]),
        ]),
      ],
    };
  },
  mamba2: () => {
    const state = 16;
    const steps = 8;
    const convolved = inner + 2 * state;
    return {
      numbers: {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": steps,
        "ssm.group_count": 1,
        "attention.head_count": 0,
      },
      tensors: [
        norm("output_norm.weight", width),
        ...each((block) => [
          norm(`${block}attn_norm.weight`, width),
          matrix(`${block}ssm_in.weight`, width, inner + convolved + steps),
          matrix(`${block}ssm_conv1d.weight`, 4, convolved),
          around(`${block}ssm_conv1d.bias`, [convolved], 0, 0.1),
          around(`${block}ssm_dt.bias`, [steps], -2, 0.5),
          around(`${block}ssm_a`, [1, steps], -0.5, 0.3),
          around(`${block}ssm_d`, [1, steps], 1, 0.1),
          norm(`${block}ssm_norm.weight`, inner),
          matrix(`${block}ssm_out.weight`, inner, width),
        ]),
      ],
    };
  },
};

function attention(block: string): Tensor[] {
  return [
    matrix(`${block}attn_q.weight`, width, heads * headSize),
    matrix(`${block}attn_k.weight`, width, kvHeads * headSize),
    matrix(`${block}attn_v.weight`, width, kvHeads * headSize),
    matrix(`${block}attn_output.weight`, heads * headSize, width),
    norm(`${block}attn_q_norm.weight`, headSize),
    norm(`${block}attn_k_norm.weight`, headSize),
  ];
}

function feedForward(block: string): Tensor[] {
  return [
    norm(`${block}ffn_norm.weight`, width),
    matrix(`${block}ffn_gate.weight`, width, inner),
    matrix(`${block}ffn_up.weight`, width, inner),
    matrix(`${block}ffn_down.weight`, inner, width),
  ];
}

function around(name: string, sizes: number[], middle: number, spread: number): Tensor {
  return { name, sizes, middle, spread };
}

function matrix(name: string, columns: number, rows: number): Tensor {
  return around(name, [columns, rows], 0, 1.7 / Math.sqrt(columns));
}

function norm(name: string, size: number): Tensor {
  return around(name, [size], 1, 0.1);
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

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function padded(bytes: Buffer): Buffer {
  const rest = (alignment - (bytes.length % alignment)) % alignment;
  return Buffer.concat([bytes, Buffer.alloc(rest)]);
}

/** From 0 to 1. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
