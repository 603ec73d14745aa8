/** What a fake engine tells of its work. */

import type { EngineUsage } from "../../src/engine/types.ts";

export const usage: EngineUsage = {
  promptTokens: 20,
  cachedTokens: 12,
  resumedTokens: 5,
  prefilledTokens: 13,
  recomputedTokens: 0,
  generatedTokens: 7,
};

/** Gauges and counters of an engine that does nothing, without those of `usage`. */
export const idleStats = {
  running: 0,
  waiting: 0,
  held: 0,
  cellsUsed: 0,
  cellsRetained: 0,
  cellsFree: 0,
  ramSequences: 0,
  ramBytes: 0,
  ramLimit: 0,
  ramSaves: 0,
  ramRestores: 0,
  ramDrops: 0,
  diskFiles: 0,
  diskBytes: 0,
  diskLimit: 0,
  diskSaves: 0,
  diskRestores: 0,
  diskFull: 0,
  diskDamaged: 0,
  diskForeign: 0,
  diskFailed: 0,
  diskBusy: 0,
  forks: 0,
  forkBytes: 0,
  forkSaves: 0,
  forkUses: 0,
  forkDrops: 0,
  computeThreads: 2,
  stepAgeMs: 0,
  extendedTokens: 0,
  discardedTokens: 0,
  draftedRows: 0,
  acceptedRows: 0,
  draftModelRows: 0,
};
