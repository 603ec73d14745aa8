/** What programs that embed Fermata import. */

export { Engine } from "./engine/engine.ts";
export type { LoadHooks } from "./engine/load.ts";
export type {
  CacheInfo,
  EngineOptions,
  EngineStats,
  EngineStep,
  EngineUsage,
  GenerateRequest,
  Generation,
  GenerationEvent,
  KvCacheType,
  ModelInfo,
  PauseTriggers,
  ResumeOptions,
  Sampling,
  SpecialToken,
} from "./engine/types.ts";
export { type ErrorCode, FermataError } from "./errors.ts";
