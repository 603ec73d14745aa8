import type { Sampling } from "../../src/engine/types.ts";

/** The most likely token, always. */
export const greedy: Sampling = {
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  typicalP: 1,
  repeatPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  penaltyLastN: 64,
  seed: 0,
  logitBias: [],
};
