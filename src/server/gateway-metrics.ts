/**
 * What the schedulers of inference gateways read, under the names that they know from vLLM: the "model server
 * protocol" of the Gateway API Inference Extension, which llm-d reads too. Every value is one of Fermata's own
 * metrics in another form.
 */

import { Counter, Gauge, type Registry } from "prom-client";
import type { ServerServices } from "./services.ts";

type Stats = ReturnType<ServerServices["engine"]["stats"]>;
interface Model {
  model: string;
  stats: Stats;
}

/** Any prefix is reused to the token; schedulers compare prompts in blocks of so many. */
const blockSize = 16;

const gauges: Record<string, [help: string, value: (stats: Stats) => number]> = {
  "vllm:num_requests_running": ["Sequences that run.", ({ running }) => running],
  "vllm:num_requests_waiting": ["Sequences that wait for a place.", ({ waiting }) => waiting],
  "vllm:kv_cache_usage_perc": [
    "Share of the KV cache that running and held sequences use; 1 is all of it.",
    usedShare,
  ],
  "vllm:gpu_cache_usage_perc": ["The same, under its name before vLLM 0.10.", usedShare],
};

const counters: Record<string, [help: string, value: (stats: Stats) => number]> = {
  "vllm:prefix_cache_queries_total": [
    "Tokens of prompts and tool results that were looked up in the KV cache.",
    ({ promptTokens, resumedTokens }) => promptTokens + resumedTokens,
  ],
  "vllm:prefix_cache_hits_total": [
    "Of those, tokens that were found.",
    ({ cachedTokens }) => cachedTokens,
  ],
};

/** `models`: one for each model in memory, read at each scrape. */
export function publishGatewayMetrics(registry: Registry, models: () => Model[]): void {
  const registers = [registry];
  const ofEach = (name: string, [help, valueOf]: (typeof gauges)[string]) => ({
    name,
    help,
    registers,
    labelNames: ["model_name"] as const,
    collect(this: { reset(): void; inc(labels: { model_name: string }, value: number): void }) {
      this.reset();
      for (const { model, stats } of models()) this.inc({ model_name: model }, valueOf(stats));
    },
  });
  for (const [name, gauge] of Object.entries(gauges)) new Gauge(ofEach(name, gauge));
  for (const [name, counter] of Object.entries(counters)) new Counter(ofEach(name, counter));
  new Gauge({
    name: "vllm:cache_config_info",
    help: "Size of the KV cache, in labels: blocks of block_size tokens.",
    registers,
    labelNames: ["model_name", "block_size", "num_gpu_blocks"],
    collect() {
      this.reset();
      for (const { model, stats } of models()) {
        const blocks = Math.floor(cellsOf(stats) / blockSize);
        this.set(
          { model_name: model, block_size: String(blockSize), num_gpu_blocks: String(blocks) },
          1,
        );
      }
    },
  });
}

function cellsOf({ cellsUsed, cellsRetained, cellsFree }: Stats): number {
  return cellsUsed + cellsRetained + cellsFree;
}

/** Retained cells count as free: they make room for whoever needs it. */
function usedShare(stats: Stats): number {
  const cells = cellsOf(stats);
  return cells === 0 ? 0 : stats.cellsUsed / cells;
}
