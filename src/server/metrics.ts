/**
 * Prometheus metrics of one server. Tokens are counted by the engine, where rows enter `llama_decode`;
 * what is here only publishes them. The re-prefill ratio is derived:
 *
 *   fermata_prefilled_tokens_total / (fermata_prompt_tokens_total - fermata_cached_tokens_total)
 *
 * It is 1.00 when no request computed a token twice; `fermata_recomputed_tokens_total` and `fermata_discarded_tokens_total`
 * say what drove it up. What was evicted between two requests, or rendered again, it does not show. What an engine of
 * agents' own or of a folder's model does has the label `model`.
 */

import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { publishGatewayMetrics } from "./gateway-metrics.ts";
import type { AgentEngine, LoadedModel, ServerServices } from "./services.ts";

type Stats = ReturnType<ServerServices["engine"]["stats"]>;
/** Of an engine that agents have to themselves, and of the models of a folder. */
type ModelLabel = { model?: string };
type Measured = Pick<AgentEngine, "engine" | "chat"> & { labels: ModelLabel };
type Labelled<Labels = ModelLabel> = [labels: Labels, value: number];
type StateLabels = ModelLabel & { state: string };
type ReasonLabels = ModelLabel & { reason?: string };

const latencyBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const tokenBuckets = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5,
];

/** Counts of an engine that are published as they are. */
const engineCounts = {
  prefilledTokens: ["fermata_prefilled_tokens_total", "Prompt rows passed to llama_decode."],
  cachedTokens: ["fermata_cached_tokens_total", "Prompt tokens found in the KV cache."],
  generatedTokens: ["fermata_generated_tokens_total", "Tokens that were sampled."],
  recomputedTokens: ["fermata_recomputed_tokens_total", "Rows computed again after an eviction."],
  extendedTokens: [
    "fermata_extended_tokens_total",
    "Rows prefilled into held sequences while their tools ran.",
  ],
  discardedTokens: [
    "fermata_discarded_tokens_total",
    "Of those, rows that the tool's result turned out not to begin with.",
  ],
  draftedRows: ["fermata_drafted_rows_total", "Rows computed for tokens that might come next."],
  acceptedRows: [
    "fermata_accepted_rows_total",
    "Of those, rows whose tokens came; the others were rejected.",
  ],
  draftModelRows: ["fermata_draft_model_rows_total", "Rows that the draft model computed."],
  ramSaves: ["fermata_ram_saves_total", "Sequences that left their slots for memory."],
  ramRestores: ["fermata_ram_restores_total", "Sequences that came back from memory."],
  ramDrops: ["fermata_ram_drops_total", "Sequences that memory had no room for any more."],
  diskSaves: ["fermata_disk_saves_total", "Sequences that were written to a file."],
  diskRestores: ["fermata_disk_restores_total", "Sequences that came back from a file."],
  forkSaves: [
    "fermata_fork_saves_total",
    "Snapshots of sequences of models that cannot be cut back anywhere.",
  ],
  forkUses: ["fermata_fork_uses_total", "Sequences that were cut back to a snapshot."],
  forkDrops: ["fermata_fork_drops_total", "Snapshots that memory had no room for any more."],
} as const satisfies Partial<Record<keyof Stats, readonly [name: string, help: string]>>;

type MeteredServices = Pick<
  ServerServices,
  "engine" | "chat" | "model" | "models" | "tools" | "approvals" | "audit" | "agentEngines"
>;

/** The engine of the one served model has no label. */
function measuredBy(services: MeteredServices): Measured[] {
  const { models, engine, chat, agentEngines = [] } = services;
  return [
    ...(models === undefined ? [{ labels: {}, engine, chat }] : models.loaded().map(labelled)),
    ...agentEngines.map(({ model, ...own }) => ({ labels: { model }, ...own })),
  ];
}

function labelled({ engine, chat, model }: LoadedModel): Measured {
  return { labels: { model: model.id }, engine, chat };
}

export class Metrics {
  readonly registry = new Registry();

  readonly requests = this.#counter(
    "fermata_requests_total",
    "HTTP requests by endpoint and status.",
    ["endpoint", "status"],
  );
  readonly toolCalls = this.#counter(
    "fermata_tool_calls_total",
    "Tool calls that this server ran.",
    ["server", "tool", "outcome"],
  );
  readonly toolDuration = this.#histogram(
    "fermata_tool_duration_seconds",
    "Run time of a tool call.",
    latencyBuckets,
  );
  readonly firstToken = this.#histogram(
    "fermata_ttft_seconds",
    "From the request to its first token.",
    latencyBuckets,
  );
  readonly resumeFirstToken = this.#histogram(
    "fermata_resume_ttft_seconds",
    "From the last tool result of a round to the next token.",
    latencyBuckets,
  );
  readonly #interToken = this.#histogram(
    "fermata_inter_token_seconds",
    "Between two tokens of one generation, holds left out.",
    tokenBuckets,
  );
  readonly #stepTime = this.#histogram(
    "fermata_step_seconds",
    "One step of the inference thread.",
    tokenBuckets,
  );
  readonly #microBatches = this.#histogram(
    "fermata_micro_batches_per_step",
    "Passes over the weights in one step.",
    [1, 2, 3, 4, 6, 8, 12, 16, 32],
  );

  constructor(services: MeteredServices) {
    const { tools, approvals, audit } = services;
    const measured = (): Measured[] => measuredBy(services);
    this.#publishCounts(measured);
    this.#publishStates(measured);
    publishGatewayMetrics(this.registry, () =>
      measured().map(({ engine, labels: { model = services.model.id } }) => ({
        model,
        stats: engine.stats(),
      })),
    );
    for (const one of measured()) this.#observe(one);
    services.models?.onLoad((loaded) => this.#observe(labelled(loaded)));
    this.#publish(
      "fermata_audit_lost_lines_total",
      "Lines of the audit log that could not be written.",
      () => [[{}, audit?.lostLines ?? 0]],
    );
    this.#gauge("fermata_mcp_servers", "MCP servers by state.", () => {
      const counts = { starting: 0, ready: 0, restarting: 0, failed: 0 };
      for (const { state } of tools?.servers?.() ?? []) counts[state] += 1;
      return byState(counts);
    });
    this.#gauge("fermata_tool_approvals", "Calls that a person was asked about, by state.", () =>
      byState({
        waiting: approvals.pending().length,
        approved: approvals.counts.approved,
        denied: approvals.counts.denied,
      }),
    );
  }

  #observe({ engine, labels }: Measured): void {
    engine.onStep(({ milliseconds, microBatches }) => {
      this.#stepTime.observe(labels, milliseconds / 1000);
      this.#microBatches.observe(labels, microBatches);
    });
    engine.onTokenInterval((milliseconds) => this.#interToken.observe(labels, milliseconds / 1000));
  }

  #publishCounts(measured: () => Measured[]): void {
    for (const [key, [name, help]] of Object.entries(engineCounts))
      this.#publish(name, help, () =>
        measured().map((one) => [one.labels, one.engine.stats()[key as keyof typeof engineCounts]]),
      );
    this.#publish("fermata_prompt_tokens_total", "Tokens of prompts and tool results.", () =>
      measured().map((one) => {
        const { promptTokens, resumedTokens } = one.engine.stats();
        return [one.labels, promptTokens + resumedTokens];
      }),
    );
    this.#publish(
      "fermata_unextended_holds_total",
      "Holds whose template has no place for a result that is not whole.",
      () => measured().map((one) => [one.labels, one.chat.counters.unextendedHolds]),
    );
    this.#publish(
      "fermata_template_rerenders_total",
      "Tool rounds whose template rewrote history, so that the prompt was rendered again.",
      () => measured().map((one) => [one.labels, one.chat.counters.rerenders]),
    );
  }

  #publishStates(measured: () => Measured[]): void {
    const ofEach = (values: (stats: Stats) => Record<string, number>): Labelled<StateLabels>[] =>
      measured().flatMap((one) => byState(values(one.engine.stats()), one.labels));
    this.#gauge("fermata_sequences", "Sequences by state.", () =>
      ofEach(({ running, waiting, held }) => ({ running, waiting, held })),
    );
    this.#gauge("fermata_kv_cells", "KV cache cells by state.", () =>
      ofEach(({ cellsUsed, cellsRetained, cellsFree }) => ({
        used: cellsUsed,
        retained: cellsRetained,
        free: cellsFree,
      })),
    );
    this.#gauge(
      "fermata_compute_threads",
      "Threads that compute; fewer while others use cores.",
      () => measured().map((one) => [one.labels, one.engine.stats().computeThreads]),
    );
    this.#gauge("fermata_ram_bytes", "Memory for sequences without a slot, by state.", () =>
      ofEach(({ ramBytes, forkBytes, ramLimit }) => ({
        used: ramBytes,
        forks: forkBytes,
        free: ramLimit - ramBytes - forkBytes,
      })),
    );
    this.#gauge("fermata_turn_bytes", "Memory for the tokens of earlier turns, by state.", () =>
      measured().flatMap(({ chat, labels }) => {
        const { used, limit } = chat.turnMemory;
        return byState({ used, free: limit - used }, labels);
      }),
    );
    this.#gauge("fermata_disk_bytes", "Files of sequences, by state.", () =>
      ofEach(({ diskBytes, diskLimit }) => ({ used: diskBytes, free: diskLimit - diskBytes })),
    );
    this.#gauge("fermata_disk_files", "Sequences in files, or on their way there.", () =>
      measured().map((one) => [one.labels, one.engine.stats().diskFiles]),
    );
    this.#publish(
      "fermata_disk_drops_total",
      "Sequences that are in no file, or not any more, by reason.",
      () =>
        measured().flatMap((one) =>
          diskDrops(one.engine.stats()).map<Labelled<ReasonLabels>>(([reason, count]) => [
            { ...one.labels, reason },
            count,
          ]),
        ),
    );
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram<"model"> {
    return new Histogram({
      name,
      help,
      buckets,
      labelNames: ["model"],
      registers: [this.registry],
    });
  }

  /** A counter that is kept elsewhere. */
  #publish(name: string, help: string, values: () => Labelled<ReasonLabels>[]): void {
    const labelNames: (keyof ReasonLabels)[] = ["reason", "model"];
    new Counter({ name, help, labelNames, registers: [this.registry], ...readBy(values) });
  }

  #gauge(name: string, help: string, values: () => Labelled<Partial<StateLabels>>[]): void {
    const labelNames: (keyof StateLabels)[] = ["state", "model"];
    new Gauge({ name, help, labelNames, registers: [this.registry], ...readBy(values) });
  }
}

/** At each scrape. */
function readBy<Labels extends object>(values: () => Labelled<Labels>[]) {
  return {
    collect(this: { reset(): void; inc(labels: Labels, value: number): void }): void {
      this.reset();
      for (const [labels, value] of values()) this.inc(labels, value);
    },
  };
}

function diskDrops(stats: Stats): [reason: string, count: number][] {
  return [
    ["full", stats.diskFull],
    ["damaged", stats.diskDamaged],
    ["foreign", stats.diskForeign],
    ["failed", stats.diskFailed],
    ["busy", stats.diskBusy],
  ];
}

function byState(counts: Record<string, number>, labels: ModelLabel = {}): Labelled<StateLabels>[] {
  return Object.entries(counts).map(([state, value]) => [{ state, ...labels }, value]);
}
