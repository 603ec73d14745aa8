import { aligned, number32, number64, plainText } from "../../support/gguf-bytes.ts";

type Value =
  | { type: "u32"; value: number }
  | { type: "string"; value: string }
  | { type: "strings"; value: string[] };

export interface FakeTensor {
  name: string;
  shape: number[];
  /** ggml's type id; 0 is f32. */
  type: number;
  offset: number;
}

export interface FakeGguf {
  magic: string;
  version: number;
  tensorCount: number;
  metadata: Record<string, Value>;
  tensors: FakeTensor[];
  dataBytes: number;
}

export const u32 = (value: number): Value => ({ type: "u32", value });
export const string = (value: string): Value => ({ type: "string", value });

/** A sound file of two tensors of 32 bytes, with changes. */
export function fakeGguf(changes: Partial<FakeGguf> = {}): Buffer {
  const file: FakeGguf = {
    magic: "GGUF",
    version: 3,
    tensorCount: 2,
    metadata: soundMetadata(),
    tensors: [
      { name: "a", shape: [4, 2], type: 0, offset: 0 },
      { name: "b", shape: [8], type: 0, offset: 32 },
    ],
    dataBytes: 64,
    ...changes,
  };
  const entries = Object.entries(file.metadata);
  const header = Buffer.concat([
    Buffer.from(file.magic),
    number32(file.version),
    number64(file.tensorCount),
    number64(entries.length),
    ...entries.flatMap(([key, value]) => [plainText(key), ...encoded(value)]),
    ...file.tensors.flatMap(({ name, shape, type, offset }) => [
      plainText(name),
      number32(shape.length),
      ...shape.map(number64),
      number32(type),
      number64(offset),
    ]),
  ]);
  return Buffer.concat([aligned(header), Buffer.alloc(file.dataBytes)]);
}

export function soundMetadata(): Record<string, Value> {
  return {
    "general.architecture": string("llama"),
    "llama.context_length": u32(2048),
    "tokenizer.ggml.tokens": { type: "strings", value: ["a", "b", "c"] },
    "tokenizer.ggml.eos_token_id": u32(2),
    "tokenizer.chat_template": string("{{ messages }}"),
  };
}

function encoded(value: Value): Buffer[] {
  switch (value.type) {
    case "u32":
      return [number32(4), number32(value.value)];
    case "string":
      return [number32(8), plainText(value.value)];
    case "strings":
      return [
        number32(9),
        number32(8),
        number64(value.value.length),
        ...value.value.map(plainText),
      ];
  }
}
