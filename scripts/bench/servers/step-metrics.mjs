async function readMetrics(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  /** The sum over all labels. */
  return (name) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^\\n]*\\})? (\\S+)$`, "gm"))].reduce(
      (total, match) => total + Number(match[1]),
      0,
    );
}

/** What Fermata says of its own steps and rows. */
export async function readStepMetrics(url) {
  const value = await readMetrics(url);
  return {
    microBatchesPerStep:
      value("fermata_micro_batches_per_step_sum") / value("fermata_micro_batches_per_step_count"),
    prefilledRows: value("fermata_prefilled_tokens_total"),
    recomputedRows: value("fermata_recomputed_tokens_total"),
  };
}

/** What Fermata says of a held loop. */
export async function readHeldMetrics(url) {
  const value = await readMetrics(url);
  const uncached = value("fermata_prompt_tokens_total") - value("fermata_cached_tokens_total");
  return {
    ...(await readStepMetrics(url)),
    toolCalls: value("fermata_tool_calls_total"),
    rePrefillRatio: value("fermata_prefilled_tokens_total") / uncached,
    resumeTtftMean:
      (1000 * value("fermata_resume_ttft_seconds_sum")) /
      value("fermata_resume_ttft_seconds_count"),
    toolMean:
      (1000 * value("fermata_tool_duration_seconds_sum")) /
      value("fermata_tool_duration_seconds_count"),
  };
}
