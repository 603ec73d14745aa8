// A BERT with random weights and a vocabulary of letters, and what it should say, computed here from its
// definition: llama.cpp's encoder and Fermata's pooling are held against it.
import { writeFile } from "node:fs/promises";
import { aligned, float32, number32, number64, plainText } from "./gguf-bytes.ts";
import { generator } from "./random.ts";

const width = 32;
const heads = 4;
const inner = 64;
const layers = 2;
const positions = 64;
const epsilon = 1e-12;

/** As SentencePiece writes it. */
function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

const letters = [..."abcdefghijklmnopqrstuvwxyz"];
const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
/** A word begins with a low line of its own kind, as llama.cpp writes WordPiece. */
const words = ["\u2581the", "\u2581cat", "\u2581sat"];
const vocabulary = [
  ...special,
  ...words,
  ...letters,
  ...letters.map((letter) => `\u2581${letter}`),
  ...Array.from({ length: 256 }, (_, byte) => byteToken(byte)),
];
const cls = vocabulary.indexOf("[CLS]");
const sep = vocabulary.indexOf("[SEP]");

export type Pooling = "mean" | "cls";
const poolingTypes: Record<Pooling | "rank", number> = { mean: 1, cls: 2, rank: 4 };

type Vector = Float32Array;
/** Rows of `columns` numbers: what a row is multiplied with gives one number. */
interface Matrix {
  columns: number;
  values: Float32Array;
}
type Tensors = Map<string, Matrix>;

export class BertModel {
  readonly #tensors: Tensors = new Map();

  constructor(seed: number) {
    const random = generator(seed);
    const matrix = (name: string, columns: number, rows: number, scale: number): void => {
      const values = Float32Array.from(
        { length: columns * rows },
        () => (random() * 2 - 1) * scale,
      );
      this.#tensors.set(name, { columns, values });
    };
    const vector = (name: string, length: number, middle: number): void => {
      const values = Float32Array.from({ length }, () => middle + (random() - 0.5) * 0.4);
      this.#tensors.set(name, { columns: length, values });
    };
    const norm = (name: string): void => {
      vector(`${name}.weight`, width, 1);
      vector(`${name}.bias`, width, 0);
    };
    const linear = (name: string, columns: number, rows: number): void => {
      matrix(`${name}.weight`, columns, rows, 1.5 / Math.sqrt(columns));
      vector(`${name}.bias`, rows, 0);
    };
    matrix("token_embd.weight", width, vocabulary.length, 1);
    matrix("token_types.weight", width, 2, 0.3);
    matrix("position_embd.weight", width, positions, 0.5);
    norm("token_embd_norm");
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ["attn_q", "attn_k", "attn_v", "attn_output"])
        linear(`blk.${layer}.${part}`, width, width);
      norm(`blk.${layer}.attn_output_norm`);
      linear(`blk.${layer}.ffn_up`, width, inner);
      linear(`blk.${layer}.ffn_down`, inner, width);
      norm(`blk.${layer}.layer_output_norm`);
    }
  }

  /** Gives it the weights of a model that ranks. */
  addClassifier(seed: number): void {
    const random = generator(seed);
    const some = (length: number): Float32Array =>
      Float32Array.from({ length }, () => (random() * 2 - 1) * 0.4);
    this.#tensors.set("cls.weight", { columns: width, values: some(width * width) });
    this.#tensors.set("cls.bias", { columns: width, values: some(width) });
    this.#tensors.set("cls.output.weight", { columns: width, values: some(width) });
    this.#tensors.set("cls.output.bias", { columns: 1, values: some(1) });
  }

  /** A query, the token between, a document. */
  pairTokens(query: string, document: string): number[] {
    return [...this.tokens(query), ...this.tokens(document).slice(1, -1)];
  }

  /** Of a model with a classifier. */
  score(tokens: readonly number[]): number {
    const [first] = this.#encode(tokens);
    const head = this.#linear("cls", first!).map(Math.tanh);
    return this.#linear("cls.output", head)[0]!;
  }

  get dimensions(): number {
    return width;
  }

  /** `tokenizer`: WordPiece, or SentencePiece. */
  async write(
    path: string,
    pooling: Pooling | "rank",
    tokenizer: "bert" | "llama" = "bert",
  ): Promise<string> {
    await writeFile(path, encode(metadata(pooling, tokenizer), this.#tensors));
    return path;
  }

  /** With the tokens around it: words of the vocabulary, or letter by letter. */
  tokens(text: string): number[] {
    const pieces = text.split(" ").flatMap((word) => {
      const whole = vocabulary.indexOf(`\u2581${word}`);
      if (whole >= 0) return [whole];
      return [...word].map((letter, index) =>
        vocabulary.indexOf(index === 0 ? `\u2581${letter}` : letter),
      );
    });
    return [cls, ...pieces, sep];
  }

  /** Of length 1. */
  embed(tokens: readonly number[], pooling: Pooling): number[] {
    const rows = this.#encode(tokens);
    const pooled =
      pooling === "cls"
        ? rows[0]!
        : rows[0]!.map((_, index) => rows.reduce((sum, row) => sum + row[index]!, 0) / rows.length);
    const length = Math.hypot(...pooled);
    return [...pooled].map((value) => value / length);
  }

  #encode(tokens: readonly number[]): Vector[] {
    let rows = tokens.map((token, position) => {
      const sum = this.#row("token_embd.weight", token).map(
        (value, index) =>
          value +
          this.#row("token_types.weight", 0)[index]! +
          this.#row("position_embd.weight", position)[index]!,
      );
      return this.#norm("token_embd_norm", sum);
    });
    for (let layer = 0; layer < layers; layer++) rows = this.#layer(`blk.${layer}`, rows);
    return rows;
  }

  #layer(name: string, rows: Vector[]): Vector[] {
    const [queries, keys, values] = ["attn_q", "attn_k", "attn_v"].map((part) =>
      rows.map((row) => this.#linear(`${name}.${part}`, row)),
    ) as [Vector[], Vector[], Vector[]];
    const size = width / heads;
    return rows.map((row, at) => {
      const mixed = new Float32Array(width);
      for (let head = 0; head < heads; head++) {
        const part = (vector: Vector): Vector => vector.subarray(head * size, (head + 1) * size);
        // Every token sees every other one.
        const scores = keys.map((key) => dot(part(queries[at]!), part(key)) / Math.sqrt(size));
        const most = Math.max(...scores);
        const weights = scores.map((score) => Math.exp(score - most));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        values.forEach((value, index) =>
          part(value).forEach((number, column) => {
            mixed[head * size + column]! += (weights[index]! / total) * number;
          }),
        );
      }
      const attended = this.#linear(`${name}.attn_output`, mixed);
      const first = this.#norm(`${name}.attn_output_norm`, add(row, attended));
      const up = this.#linear(`${name}.ffn_up`, first).map(gelu);
      return this.#norm(
        `${name}.layer_output_norm`,
        add(first, this.#linear(`${name}.ffn_down`, up)),
      );
    });
  }

  #row(name: string, index: number): Vector {
    const { columns, values } = this.#tensors.get(name)!;
    return values.subarray(index * columns, (index + 1) * columns);
  }

  #linear(name: string, input: Vector): Vector {
    return this.#row(`${name}.bias`, 0).map(
      (bias, row) => bias + dot(this.#row(`${name}.weight`, row), input),
    );
  }

  #norm(name: string, input: Vector): Vector {
    const mean = input.reduce((sum, value) => sum + value, 0) / input.length;
    const variance = input.reduce((sum, value) => sum + (value - mean) ** 2, 0) / input.length;
    const weight = this.#row(`${name}.weight`, 0);
    const bias = this.#row(`${name}.bias`, 0);
    return input.map(
      (value, index) =>
        ((value - mean) / Math.sqrt(variance + epsilon)) * weight[index]! + bias[index]!,
    );
  }
}

function dot(a: Vector, b: Vector): number {
  return a.reduce((sum, value, index) => sum + value * b[index]!, 0);
}

function add(a: Vector, b: Vector): Vector {
  return a.map((value, index) => value + b[index]!);
}

/** ggml's: by the hyperbolic tangent. */
function gelu(value: number): number {
  return 0.5 * value * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value ** 3)));
}

function metadata(pooling: Pooling | "rank", tokenizer: string): Buffer[] {
  const bytes = tokenizer === "llama" ? 6 : 1;
  const types = vocabulary.map((token, index) =>
    number32(index < special.length ? 3 : token.startsWith("<") ? bytes : 1),
  );
  const entries: [string, Buffer][] = [
    ["general.architecture", text("bert")],
    ["bert.block_count", u32(layers)],
    ["bert.context_length", u32(positions)],
    ["bert.embedding_length", u32(width)],
    ["bert.feed_forward_length", u32(inner)],
    ["bert.attention.head_count", u32(heads)],
    ["bert.attention.layer_norm_epsilon", f32(epsilon)],
    ["bert.attention.causal", Buffer.concat([number32(7), Buffer.of(0)])],
    ["bert.pooling_type", u32(poolingTypes[pooling])],
    ["tokenizer.ggml.model", text(tokenizer)],
    ["tokenizer.ggml.token_type_count", u32(2)],
    ["tokenizer.ggml.tokens", array(8, vocabulary.map(plainText))],
    ["tokenizer.ggml.token_type", array(5, types)],
    ["tokenizer.ggml.padding_token_id", u32(0)],
    ["tokenizer.ggml.unknown_token_id", u32(1)],
    ["tokenizer.ggml.bos_token_id", u32(cls)],
    ["tokenizer.ggml.cls_token_id", u32(cls)],
    ["tokenizer.ggml.seperator_token_id", u32(sep)],
  ];
  return entries.map(([key, value]) => Buffer.concat([plainText(key), value]));
}

/** A GGUF of 32-bit floats. */
function encode(entries: readonly Buffer[], tensors: Tensors): Buffer {
  const infos: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  for (const [name, { columns, values }] of tensors) {
    const isVector = columns === values.length;
    const shape = isVector ? [columns] : [columns, values.length / columns];
    const sizes = shape.map(number64);
    infos.push(plainText(name), number32(shape.length), ...sizes, number32(0), number64(offset));
    const bytes = aligned(Buffer.from(values.buffer, values.byteOffset, values.byteLength));
    data.push(bytes);
    offset += bytes.length;
  }
  const head = [
    Buffer.from("GGUF"),
    number32(3),
    number64(tensors.size),
    number64(entries.length),
    ...entries,
    ...infos,
  ];
  return Buffer.concat([aligned(Buffer.concat(head)), ...data]);
}

function array(kind: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([number32(9), number32(kind), number64(items.length), ...items]);
}

function text(value: string): Buffer {
  return Buffer.concat([number32(8), plainText(value)]);
}

function u32(value: number): Buffer {
  return Buffer.concat([number32(4), number32(value)]);
}

function f32(value: number): Buffer {
  return Buffer.concat([number32(6), float32(value)]);
}
