/** What the names in a trace mean, for people. */

const waits: Readonly<Record<string, string>> = {
  turn: "earlier requests of the same key",
  place: "a place: as many sequences run as may",
  prefix: "another sequence that is computing the same beginning",
  file: "a file with the beginning of its prompt",
  slot: "a slot: all are running or held",
  moves: "the next step: this one has moved enough cells",
  reader: "its reader, which has stopped",
  cells: "cells: others took its own",
};

const sources: Readonly<Record<string, string>> = {
  hold: "kept by the hold",
  slot: "found in a slot",
  copy: "copied from another slot",
  ram: "found in memory",
  disk: "found in a file",
  fork: "found in a snapshot",
};

/** Of `TraceSpan.waits_for`, behind "waits for". */
export function waitWords(reason: string): string {
  return waits[reason] ?? reason;
}

/** Of `TraceSpan.source`, behind the number of positions. */
export function sourceWords(source: string): string {
  return sources[source] ?? source;
}
