// The tensors of tiny models of each kind of memory. The same architectures as test/native/random_models.h, and more.

export const kinds = [
  "gemma3",
  "gpt-oss",
  "lfm2",
  "granitehybrid",
  "qwen3next",
  "qwen35",
  "mamba2",
  "rwkv7",
] as const;
/** Of the last, positions are learned. */
export type Kind = (typeof kinds)[number] | "gpt2";

export const layers = 6;
export const width = 64;
export const inner = 128;
const heads = 4;
const kvHeads = 2;
const headSize = 16;
const experts = 4;
const steps = 8;
const state = 16;

/** Of the state's keys and values, all heads. */
const stateKeys = 2 * state;
const stateValues = 4 * state;
export const attentionNumbers = {
  "attention.head_count": heads,
  "attention.head_count_kv": kvHeads,
  "attention.key_length": headSize,
  "attention.value_length": headSize,
};
const deltaNetNumbers = {
  ...attentionNumbers,
  "rope.dimension_count": headSize,
  full_attention_interval: 3,
  "ssm.conv_kernel": 4,
  "ssm.inner_size": stateValues,
  "ssm.state_size": state,
  "ssm.time_step_rank": 4,
  "ssm.group_count": 2,
};

export interface Tensor {
  name: string;
  sizes: number[];
  middle: number;
  spread: number;
  /** Added where row and column are the same. */
  diagonal?: number;
}

export interface Parts {
  tensors: Tensor[];
  /** Of the metadata, without the architecture's name. */
  numbers: Record<string, number | number[]>;
  /** The output's matrix is not that of the embeddings. */
  hasOutput?: boolean;
}

export const each = (of: (block: string, layer: number) => Tensor[]): Tensor[] =>
  Array.from({ length: layers }, (_, layer) => of(`blk.${layer}.`, layer)).flat();

export const parts: Record<Kind, () => Parts> = {
  gemma3: () => ({
    numbers: {
      ...attentionNumbers,
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
  granitehybrid: () => {
    const hasAttention = (layer: number): boolean => layer % 3 === 2;
    return {
      numbers: {
        ...mixerNumbers,
        "attention.head_count": heads,
        "attention.head_count_kv": Array.from({ length: layers }, (_, layer) =>
          hasAttention(layer) ? kvHeads : 0,
        ),
      },
      tensors: [
        norm("output_norm.weight", width),
        ...each((block, layer) => [
          norm(`${block}attn_norm.weight`, width),
          ...(hasAttention(layer) ? attention(block).slice(0, 4) : mixer(block)),
          ...feedForward(block),
        ]),
      ],
    };
  },
  mamba2: () => ({
    numbers: { ...mixerNumbers, "attention.head_count": 0 },
    tensors: [
      norm("output_norm.weight", width),
      ...each((block) => [norm(`${block}attn_norm.weight`, width), ...mixer(block)]),
    ],
  }),
  "gpt-oss": () => ({
    numbers: {
      ...expertNumbers,
      ...attentionNumbers,
      "attention.sliding_window": 48,
    },
    tensors: [
      norm("output_norm.weight", width),
      ...each((block) => [
        norm(`${block}attn_norm.weight`, width),
        ...attention(block).slice(0, 4),
        around(`${block}attn_output.bias`, [width], 0, 0.1),
        around(`${block}attn_sinks.weight`, [heads], 0, 1),
        norm(`${block}post_attention_norm.weight`, width),
        ...mixtureOfExperts(block),
        around(`${block}ffn_gate_inp.bias`, [experts], 0, 0.1),
        around(`${block}ffn_gate_exps.bias`, [inner, experts], 0, 0.1),
        around(`${block}ffn_down_exps.bias`, [width, experts], 0, 0.1),
        around(`${block}ffn_up_exps.bias`, [inner, experts], 0, 0.1),
      ]),
    ],
    hasOutput: true,
  }),
  qwen3next: () => ({
    numbers: {
      ...expertNumbers,
      expert_shared_feed_forward_length: inner,
      ...deltaNetNumbers,
    },
    tensors: [
      norm("output_norm.weight", width),
      ...each((block, layer) => [
        ...deltaNet(block, layer, [matrix(`${block}ssm_ba.weight`, width, 8)]),
        ...mixtureOfExperts(block),
        around(`${block}ffn_gate_inp_shexp.weight`, [width], 0, 0.2),
        matrix(`${block}ffn_gate_shexp.weight`, width, inner),
        matrix(`${block}ffn_up_shexp.weight`, width, inner),
        matrix(`${block}ffn_down_shexp.weight`, inner, width),
      ]),
    ],
  }),
  qwen35: () => ({
    numbers: { ...deltaNetNumbers, "rope.dimension_sections": [4, 2, 2, 0] },
    tensors: [
      norm("output_norm.weight", width),
      ...each((block, layer) => [
        ...deltaNet(block, layer, [
          matrix(`${block}ssm_beta.weight`, width, 4),
          matrix(`${block}ssm_alpha.weight`, width, 4),
        ]),
        ...feedForward(block).slice(1),
      ]),
    ],
  }),
  rwkv7: () => {
    const rank = 8;
    const low = (name: string): Tensor[] => [
      matrix(`${name}1.weight`, width, rank),
      matrix(`${name}2.weight`, rank, width),
    ];
    const shifted = (name: string): Tensor => around(name, [width], 0, 0.5);
    const normed = (name: string): Tensor[] => [
      norm(`${name}.weight`, width),
      around(`${name}.bias`, [width], 0, 0.1),
    ];
    return {
      numbers: {
        "attention.head_count": 0,
        // ggml computes no smaller ones.
        "wkv.head_size": 64,
        "attention.decay_lora_rank": rank,
        "attention.iclr_lora_rank": rank,
        "attention.value_residual_mix_lora_rank": rank,
        "attention.gate_lora_rank": rank,
        token_shift_count: 2,
      },
      tensors: [
        ...normed("token_embd_norm"),
        ...normed("output_norm"),
        ...each((block) => [
          ...normed(`${block}attn_norm`),
          ...normed(`${block}attn_norm_2`),
          ...["w", "a", "v"].flatMap((name) => [
            shifted(`${block}time_mix_${name}0.weight`),
            ...low(`${block}time_mix_${name}`),
          ]),
          ...low(`${block}time_mix_g`),
          around(`${block}time_mix_lerp_fused.weight`, [width, 1, 1, 6], 0.5, 0.3),
          ...["k_k", "k_a", "r_k"].map((name) => shifted(`${block}time_mix_${name}.weight`)),
          ...["key", "value", "receptance", "output"].map((name) =>
            matrix(`${block}time_mix_${name}.weight`, width, width),
          ),
          ...normed(`${block}time_mix_ln`),
          around(`${block}channel_mix_lerp_k.weight`, [width, 1, 1], 0.5, 0.3),
          matrix(`${block}channel_mix_key.weight`, width, inner),
          matrix(`${block}channel_mix_value.weight`, inner, width),
        ]),
      ],
      hasOutput: true,
    };
  },
  gpt2: () => {
    const biased = (name: string, columns: number, rows: number): Tensor[] => [
      matrix(`${name}.weight`, columns, rows),
      around(`${name}.bias`, [rows], 0, 0.1),
    ];
    const normed = (name: string): Tensor[] => [
      norm(`${name}.weight`, width),
      around(`${name}.bias`, [width], 0, 0.1),
    ];
    return {
      numbers: { "attention.head_count": heads, context_length: learnedPositions },
      tensors: [
        around("position_embd.weight", [width, learnedPositions], 0, 0.5),
        ...normed("output_norm"),
        ...each((block) => [
          ...normed(`${block}attn_norm`),
          ...biased(`${block}attn_qkv`, width, 3 * width),
          ...biased(`${block}attn_output`, width, width),
          ...normed(`${block}ffn_norm`),
          ...biased(`${block}ffn_up`, width, inner),
          ...biased(`${block}ffn_down`, inner, width),
        ]),
      ],
    };
  },
};

const learnedPositions = 600;

export const expertNumbers = {
  expert_count: experts,
  expert_used_count: 2,
  expert_feed_forward_length: inner,
};

const mixerNumbers = {
  "ssm.conv_kernel": 4,
  "ssm.inner_size": inner,
  "ssm.state_size": state,
  "ssm.time_step_rank": steps,
  "ssm.group_count": 1,
};

/** Of Mamba 2. */
function mixer(block: string): Tensor[] {
  const convolved = inner + 2 * state;
  return [
    matrix(`${block}ssm_in.weight`, width, inner + convolved + steps),
    matrix(`${block}ssm_conv1d.weight`, 4, convolved),
    around(`${block}ssm_conv1d.bias`, [convolved], 0, 0.1),
    around(`${block}ssm_dt.bias`, [steps], -2, 0.5),
    around(`${block}ssm_a`, [1, steps], -0.5, 0.3),
    around(`${block}ssm_d`, [1, steps], 1, 0.1),
    norm(`${block}ssm_norm.weight`, inner),
    matrix(`${block}ssm_out.weight`, inner, width),
  ];
}

export function mixtureOfExperts(block: string): Tensor[] {
  const many = (name: string, columns: number, rows: number): Tensor =>
    around(`${block}${name}.weight`, [columns, rows, experts], 0, 1.7 / Math.sqrt(columns));
  return [
    matrix(`${block}ffn_gate_inp.weight`, width, experts),
    many("ffn_gate_exps", width, inner),
    many("ffn_up_exps", width, inner),
    many("ffn_down_exps", inner, width),
  ];
}

/** The last two are norms of queries and keys. */
export function attention(block: string): Tensor[] {
  return [
    matrix(`${block}attn_q.weight`, width, heads * headSize),
    matrix(`${block}attn_k.weight`, width, kvHeads * headSize),
    matrix(`${block}attn_v.weight`, width, kvHeads * headSize),
    matrix(`${block}attn_output.weight`, heads * headSize, width),
    norm(`${block}attn_q_norm.weight`, headSize),
    norm(`${block}attn_k_norm.weight`, headSize),
  ];
}

/** Attention in each third layer, with a gate; in the others a gated delta net, of which `rates` is a part. */
export function deltaNet(block: string, layer: number, rates: Tensor[]): Tensor[] {
  const convolved = 2 * stateKeys + stateValues;
  const norms = ["attn_norm", "post_attention_norm"].map((name) =>
    norm(`${block}${name}.weight`, width),
  );
  if (layer % 3 === 2) {
    const queries = matrix(`${block}attn_q.weight`, width, 2 * heads * headSize);
    return [...norms, queries, ...attention(block).slice(1)];
  }
  return [
    ...norms,
    matrix(`${block}attn_qkv.weight`, width, convolved),
    matrix(`${block}attn_gate.weight`, width, stateValues),
    matrix(`${block}ssm_conv1d.weight`, 4, convolved),
    around(`${block}ssm_dt.bias`, [4], -2, 0.5),
    around(`${block}ssm_a`, [4], -0.5, 0.3),
    ...rates,
    norm(`${block}ssm_norm.weight`, state),
    matrix(`${block}ssm_out.weight`, stateValues, width),
  ];
}

export function feedForward(block: string): Tensor[] {
  return [
    norm(`${block}ffn_norm.weight`, width),
    matrix(`${block}ffn_gate.weight`, width, inner),
    matrix(`${block}ffn_up.weight`, width, inner),
    matrix(`${block}ffn_down.weight`, inner, width),
  ];
}

export function around(name: string, sizes: number[], middle: number, spread: number): Tensor {
  return { name, sizes, middle, spread };
}

export function matrix(name: string, columns: number, rows: number): Tensor {
  return around(name, [columns, rows], 0, 1.7 / Math.sqrt(columns));
}

export function norm(name: string, size: number): Tensor {
  return around(name, [size], 1, 0.1);
}
