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
  // The layers of LFM2 in the sizes of the 135M shape: two short convolutions, then attention.
  hybrid: {
    name: "hybrid",
    architecture: "lfm2",
    layers: 30,
    width: 576,
    heads: 9,
    kvHeads: 3,
    headSize: 64,
    feedForward: 1536,
    context: 40960,
    ropeBase: 100_000,
    headNorms: true,
    convolution: { length: 3, attentionEvery: 3 },
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

/** Whether a layer has attention; the others of a hybrid shape have a short convolution. */
export function hasAttention({ convolution }, layer) {
  return convolution === undefined || (layer + 1) % convolution.attentionEvery === 0;
}

function attention({ width, heads, kvHeads, headSize, headNorms }, block) {
  return [
    { name: `${block}.attn_q.weight`, rows: heads * headSize, columns: width },
    { name: `${block}.attn_k.weight`, rows: kvHeads * headSize, columns: width },
    { name: `${block}.attn_v.weight`, rows: kvHeads * headSize, columns: width },
    ...(headNorms
      ? [
          { name: `${block}.attn_q_norm.weight`, rows: headSize },
          { name: `${block}.attn_k_norm.weight`, rows: headSize },
        ]
      : []),
    { name: `${block}.attn_output.weight`, rows: width, columns: heads * headSize },
  ];
}

function shortConvolution({ width, convolution }, block) {
  return [
    { name: `${block}.shortconv.conv.weight`, rows: width, columns: convolution.length, f32: true },
    { name: `${block}.shortconv.in_proj.weight`, rows: 3 * width, columns: width },
    { name: `${block}.shortconv.out_proj.weight`, rows: width, columns: width },
  ];
}

/** Names, rows and columns of one shape's tensors; a norm is a tensor without columns. `f32`: it is not quantized. */
export function tensorsOf(shape, vocabulary) {
  const { width, feedForward } = shape;
  const perLayer = (layer) => {
    const block = `blk.${layer}`;
    return [
      { name: `${block}.attn_norm.weight`, rows: width },
      ...(hasAttention(shape, layer) ? attention(shape, block) : shortConvolution(shape, block)),
      { name: `${block}.ffn_norm.weight`, rows: width },
      { name: `${block}.ffn_gate.weight`, rows: feedForward, columns: width },
      { name: `${block}.ffn_up.weight`, rows: feedForward, columns: width },
      { name: `${block}.ffn_down.weight`, rows: width, columns: feedForward },
    ];
  };
  const lastNorm = shape.convolution === undefined ? "output_norm" : "token_embd_norm";
  return [
    { name: "token_embd.weight", rows: vocabulary, columns: width },
    { name: `${lastNorm}.weight`, rows: width },
    ...Array.from({ length: shape.layers }, (_, layer) => perLayer(layer)).flat(),
  ];
}
