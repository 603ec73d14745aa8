/** What the simulator reads of a calibration. */
export interface Calibration {
  machine: { cores: number };
  passes: { rows: number; ms: number }[];
  attention: { decodeMs: number; chunkMs: number };
  movedBytesPerMs: number;
  /** Rows by how many of the other replicas compute chunks, columns by how many decode. */
  slowdowns: { chunk: number[][]; decode: number[][] };
  request: { fixedMs: number; tokenMs: number };
  token: { sentMs: number };
  engine: Record<string, number>;
  parts?: { remote: { readBytesPerMs: number; writeBytesPerMs: number; latencyMs: number } };
}

export interface Session {
  prefix: string;
  prefixSeed: number;
  sharedTokens: number;
  seed: number;
  startMs?: number;
  steps: { freshTokens: number; generatedTokens: number; toolMs: number }[];
}

export interface SimulatedTurn {
  id: number;
  index: number;
  session: Session;
  promptTokens: number;
  generatedTokens: number;
  reused: number;
  tries: number;
  sentAt: number;
  admittedAt: number;
  firstAt: number;
  endedAt: number;
  replica: { name: string };
}

export interface Clients {
  turns: SimulatedTurn[];
  lost: number;
  arrive(sessions: readonly Session[]): void;
  keep(atOnce: number, sessions: readonly Session[]): void;
}

export function simulateReplicas(
  calibration: Calibration,
  options: {
    replicas: number;
    router: "leastLoaded" | "affinity" | "bounded";
    sharedHost?: boolean;
    remote?: boolean;
    untilMs?: number;
    engine?: Record<string, number>;
    deaths?: { meanLifeMs: number; restartMs: number; seed: number };
  },
  begin: (clients: Clients) => void,
): {
  clients: Clients;
  replicas: { name: string; computedMs: number; counts(): Record<string, number> }[];
  simulation: { now: number };
};
