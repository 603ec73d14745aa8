/** A turn: the first `sharedTokens` of its prompt are those of `prefixSeed`, the others and the answer those of `seed`. */
export interface EngineTurn {
  id: number;
  prefixSeed: number;
  seed: number;
  sharedTokens: number;
  promptTokens: number;
  generatedTokens: number;
  leaseMs: number;
}

/** What one step did: the rows of each pass over the weights, the positions that rows attended to. */
export interface EngineWork {
  passes: number[];
  decodeAttended: number;
  chunkAttended: number;
  movedBytes: number;
  tokens: number;
  events: {
    kind: "admitted" | "first" | "finished" | "failed";
    id: number;
    reused?: number;
    message?: string;
  }[];
}

export interface SimulatedEngine {
  submit(turn: EngineTurn): void;
  /** Undefined: there was nothing to do. */
  step(now: number): EngineWork | undefined;
  /** How long the last step took. */
  took(milliseconds: number): void;
  stats(): Record<string, number>;
}

export function makeEngine(options: Record<string, unknown>): SimulatedEngine;
export function makeSharedFiles(speed: {
  readBytesPerMs: number;
  writeBytesPerMs: number;
  latencyMs: number;
}): { busyMs(): number };
