// Tiny models with an MTP layer. Their layers add little to what they get, and the MTP layer goes by the token for the
// most part, so it mostly says what the model will say itself.
import {
  around,
  attention,
  attentionNumbers,
  deltaNet,
  each,
  expertNumbers,
  feedForward,
  inner,
  layers,
  matrix,
  mixtureOfExperts,
  norm,
  type Parts,
  parts,
  type Tensor,
  width,
} from "./kind-tensors.ts";
import { writeRandom } from "./random-kinds.ts";

export const mtpKinds = ["qwen35", "glm4moe"] as const;
type MtpKind = (typeof mtpKinds)[number];

/** What adds to a layer's input. */
const addends = /\.(?:attn_output|ssm_out|ffn_down\w*)\.weight$/u;

/** Writes it into a temporary folder. @param more metadata of its architecture @returns its path */
export function writeMtpModel(kind: MtpKind, more: Record<string, number> = {}): string {
  const { tensors, numbers } = kind === "qwen35" ? parts.qwen35() : glm4moe();
  const block = `blk.${layers}.`;
  const layer =
    kind === "qwen35"
      ? [...deltaNet(block, 2, []), ...feedForward(block).slice(1)]
      : glmLayer(block, layers);
  const all = [...tensors, ...layer].map((tensor) => {
    // It is sure of its choice.
    if (tensor.name === "output_norm.weight") return { ...tensor, middle: 8 };
    return addends.test(tensor.name) ? { ...tensor, spread: 0.0005 } : tensor;
  });
  return writeRandom(kind, {
    numbers: { ...numbers, block_count: layers + 1, nextn_predict_layers: 1, ...more },
    tensors: [
      ...all,
      around(`${block}nextn.enorm.weight`, [width], 1, 0),
      around(`${block}nextn.hnorm.weight`, [width], 1, 0),
      { ...around(`${block}nextn.eh_proj.weight`, [2 * width, width], 0, 0.005), diagonal: 1 },
    ],
    hasOutput: true,
  });
}

/** Attention in all layers: its cache can be cut anywhere. */
function glm4moe(): Parts {
  return {
    numbers: {
      ...attentionNumbers,
      ...expertNumbers,
      expert_shared_count: 1,
      leading_dense_block_count: 1,
    },
    tensors: [norm("output_norm.weight", width), ...each(glmLayer)],
  };
}

function glmLayer(block: string, layer: number): Tensor[] {
  return [
    norm(`${block}attn_norm.weight`, width),
    ...attention(block),
    norm(`${block}post_attention_norm.weight`, width),
    ...(layer === 0
      ? feedForward(block).slice(1)
      : [
          ...mixtureOfExperts(block),
          around(`${block}exp_probs_b.bias`, [4], 0, 0.1),
          matrix(`${block}ffn_gate_shexp.weight`, width, inner),
          matrix(`${block}ffn_up_shexp.weight`, width, inner),
          matrix(`${block}ffn_down_shexp.weight`, inner, width),
        ]),
  ];
}
