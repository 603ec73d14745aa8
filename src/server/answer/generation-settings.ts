/** Sampling under llama-server's names, as its answers repeat it. */

import type { Sampling } from "../../engine/types.ts";

/** llama-server's names of the samplers, in the order in which they are applied. */
const samplerOrder = [
  "penalties",
  "dry",
  "top_n_sigma",
  "top_k",
  "typ_p",
  "top_p",
  "min_p",
  "xtc",
  "temperature",
];

/** What a text is generated with, under llama-server's names; `maxTokens` undefined: no limit but the context's. */
export function generationSettings(
  sampling: Omit<Sampling, "script">,
  maxTokens: number | undefined,
): object {
  const { dry } = sampling;
  return {
    seed: sampling.seed,
    temperature: sampling.temperature,
    dynatemp_range: sampling.dynatempRange ?? 0,
    dynatemp_exponent: sampling.dynatempExponent ?? 1,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    top_n_sigma: sampling.topNSigma ?? -1,
    xtc_probability: sampling.xtcProbability ?? 0,
    xtc_threshold: sampling.xtcThreshold ?? 0.1,
    typical_p: sampling.typicalP,
    repeat_last_n: sampling.penaltyLastN,
    repeat_penalty: sampling.repeatPenalty,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    dry_multiplier: dry?.multiplier ?? 0,
    dry_base: dry?.base ?? 1.75,
    dry_allowed_length: dry?.allowedLength ?? 2,
    dry_penalty_last_n: dry?.penaltyLastN ?? 64,
    dry_sequence_breakers: dry?.sequenceBreakers ?? ["\n", ":", '"', "*"],
    mirostat: sampling.mirostat ?? 0,
    mirostat_tau: sampling.mirostatTau ?? 5,
    mirostat_eta: sampling.mirostatEta ?? 0.1,
    max_tokens: maxTokens ?? -1,
    n_predict: maxTokens ?? -1,
    n_keep: 0,
    n_discard: 0,
    ignore_eos: sampling.ignoresEnd ?? false,
    logit_bias: sampling.logitBias.map(([token, bias]) => ({ token, bias })),
    min_keep: sampling.minKeep ?? 1,
    samplers: samplerOrder,
    timings_per_token: false,
    post_sampling_probs: false,
    lora: [],
  };
}
