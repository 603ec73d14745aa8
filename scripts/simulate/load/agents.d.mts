import type { Session } from "../simulate-replicas.mjs";

export function agentSessions(options: {
  seed: number;
  perMinute: number;
  lengthMs: number;
  contextSize: number;
}): (Session & { startMs: number })[];
