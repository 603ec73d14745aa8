import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kinds, readHeader } from "./gguf-header.mjs";
import { hasAttention } from "./shape.mjs";

const tokenTypes = { control: 3, userDefined: 4, unused: 5 };

// llama.cpp's copy of the vocabulary has placeholders where Qwen's models have these.
const addedTokens = {
  151657: ["<tool_call>", tokenTypes.userDefined],
  151658: ["</tool_call>", tokenTypes.userDefined],
  151665: ["<tool_response>", tokenTypes.userDefined],
  151666: ["</tool_response>", tokenTypes.userDefined],
  151667: ["<think>", tokenTypes.userDefined],
  151668: ["</think>", tokenTypes.userDefined],
};
const endOfTurn = 151645;

export function vocabularyFiles(llamaSource) {
  return [
    join(llamaSource, "models/ggml-vocab-qwen2.gguf"),
    join(llamaSource, "models/templates/Qwen-Qwen2.5-7B-Instruct.jinja"),
  ];
}

/** Qwen's vocabulary and ChatML template out of llama.cpp's source, as metadata entries. */
function tokenizerMetadata(llamaSource) {
  const [vocabulary, template] = vocabularyFiles(llamaSource);
  const { metadata: source } = readHeader(readFileSync(vocabulary));
  const entries = [...source].filter(([key]) => key.startsWith("tokenizer."));
  const metadata = new Map(entries);

  const tokens = metadata.get("tokenizer.ggml.tokens").value;
  const types = metadata.get("tokenizer.ggml.token_type").value;
  tokens.forEach((token, id) => {
    if (token.startsWith("[PAD")) types[id] = tokenTypes.unused;
  });
  for (const [id, [token, type]] of Object.entries(addedTokens)) {
    tokens[id] = token;
    types[id] = type;
  }
  metadata.set("tokenizer.ggml.eos_token_id", { kind: kinds.u32, value: endOfTurn });
  metadata.set("tokenizer.ggml.add_bos_token", { kind: kinds.bool, value: false });
  metadata.set("tokenizer.chat_template", {
    kind: kinds.string,
    value: readFileSync(template, "utf8"),
  });
  return metadata;
}

/** A number, or one for each layer of a hybrid shape. */
function headsOfKv(shape) {
  const { convolution, layers, kvHeads } = shape;
  if (convolution === undefined) return { kind: kinds.u32, value: kvHeads };
  const value = Array.from({ length: layers }, (_, layer) =>
    hasAttention(shape, layer) ? kvHeads : 0,
  );
  return { kind: kinds.array, element: kinds.u32, value };
}

export function metadataOf(shape, llamaSource) {
  const tokenizer = tokenizerMetadata(llamaSource);
  const u32 = (value) => ({ kind: kinds.u32, value });
  const f32 = (value) => ({ kind: kinds.f32, value });
  const string = (value) => ({ kind: kinds.string, value });
  const arch = shape.architecture;
  return new Map([
    ["general.architecture", string(arch)],
    ["general.name", string(`${shape.name} shape, random weights`)],
    ["general.file_type", u32(7)],
    [`${arch}.vocab_size`, u32(tokenizer.get("tokenizer.ggml.tokens").value.length)],
    [`${arch}.block_count`, u32(shape.layers)],
    [`${arch}.context_length`, u32(shape.context)],
    [`${arch}.embedding_length`, u32(shape.width)],
    [`${arch}.feed_forward_length`, u32(shape.feedForward)],
    [`${arch}.attention.head_count`, u32(shape.heads)],
    [`${arch}.attention.head_count_kv`, headsOfKv(shape)],
    [`${arch}.attention.key_length`, u32(shape.headSize)],
    [`${arch}.attention.value_length`, u32(shape.headSize)],
    [`${arch}.attention.layer_norm_rms_epsilon`, f32(1e-6)],
    [`${arch}.rope.dimension_count`, u32(shape.headSize)],
    [`${arch}.rope.freq_base`, f32(shape.ropeBase)],
    ...(shape.convolution ? [[`${arch}.shortconv.l_cache`, u32(shape.convolution.length)]] : []),
    ...tokenizer,
  ]);
}
