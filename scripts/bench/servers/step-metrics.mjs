/** What Fermata says of its own steps and rows. */
export async function readStepMetrics(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const value = (name) => Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "m").exec(text)?.[1]);
  return {
    microBatchesPerStep:
      value("fermata_micro_batches_per_step_sum") / value("fermata_micro_batches_per_step_count"),
    steps: value("fermata_micro_batches_per_step_count"),
    draftedRows: value("fermata_drafted_rows_total"),
    acceptedRows: value("fermata_accepted_rows_total"),
    prefilledRows: value("fermata_prefilled_tokens_total"),
    recomputedRows: value("fermata_recomputed_tokens_total"),
  };
}
