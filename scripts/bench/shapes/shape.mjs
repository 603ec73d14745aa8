/** Models by their sizes alone: the weights are random, which costs the same time as trained ones. */
export const shapes = {
  "135M": {
    name: "135M",
    architecture: "llama",
    layers: 30,
    width: 576,
    heads: 9,
    kvHeads: 3,
    headSize: 64,
    feedForward: 1536,
    context: 40960,
    ropeBase: 100_000,
    headNorms: false,
  },
  "0.6B": {
    name: "0.6B",
    architecture: "qwen3",
    layers: 28,
    width: 1024,
    heads: 16,
    kvHeads: 8,
    headSize: 128,
    feedForward: 3072,
    context: 40960,
    ropeBase: 1_000_000,
    headNorms: true,
  },
  tiny: {
    name: "tiny",
    architecture: "llama",
    layers: 2,
    width: 128,
    heads: 2,
    kvHeads: 1,
    headSize: 64,
    feedForward: 256,
    context: 40960,
    ropeBase: 100_000,
    headNorms: false,
  },
};

/** Names, rows and columns of one shape's tensors; a norm is a tensor without columns. */
export function tensorsOf(shape, vocabulary) {
  const { width, heads, kvHeads, headSize, feedForward } = shape;
  const perLayer = (layer) => [
    { name: `blk.${layer}.attn_norm.weight`, rows: width },
    { name: `blk.${layer}.attn_q.weight`, rows: heads * headSize, columns: width },
    { name: `blk.${layer}.attn_k.weight`, rows: kvHeads * headSize, columns: width },
    { name: `blk.${layer}.attn_v.weight`, rows: kvHeads * headSize, columns: width },
    ...(shape.headNorms
      ? [
          { name: `blk.${layer}.attn_q_norm.weight`, rows: headSize },
          { name: `blk.${layer}.attn_k_norm.weight`, rows: headSize },
        ]
      : []),
    { name: `blk.${layer}.attn_output.weight`, rows: width, columns: heads * headSize },
    { name: `blk.${layer}.ffn_norm.weight`, rows: width },
    { name: `blk.${layer}.ffn_gate.weight`, rows: feedForward, columns: width },
    { name: `blk.${layer}.ffn_up.weight`, rows: feedForward, columns: width },
    { name: `blk.${layer}.ffn_down.weight`, rows: width, columns: feedForward },
  ];
  return [
    { name: "token_embd.weight", rows: vocabulary, columns: width },
    { name: "output_norm.weight", rows: width },
    ...Array.from({ length: shape.layers }, (_, layer) => perLayer(layer)).flat(),
  ];
}
