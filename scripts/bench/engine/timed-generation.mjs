export const greedy = {
  temperature: 0,
  topK: 1,
  topP: 1,
  minP: 0,
  typicalP: 1,
  repeatPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  penaltyLastN: 0,
  seed: 1,
  logitBias: [],
};

/**
 * Generates `maxTokens` tokens. Returns { arrivals, usage }: for each token the milliseconds since
 * the start.
 */
export async function timedGeneration(engine, prompt, maxTokens) {
  const start = performance.now();
  const arrivals = [];
  let usage;
  for await (const event of engine.generate({ prompt, maxTokens, sampling: greedy })) {
    if (event.type === "text") {
      const now = performance.now() - start;
      for (let count = 0; count < event.tokens.length; count++) arrivals.push(now);
    } else if (event.type === "finish") {
      usage = event.usage;
    }
  }
  if (arrivals.length !== maxTokens) {
    throw new Error(`the model ended after ${arrivals.length} of ${maxTokens} tokens`);
  }
  return { arrivals, usage };
}
