// The rows that a cache which knows the future would compute, for the turns of a run that was measured.

/**
 * Rows of a turn that no cache can have: the new message, the template's text around it, and the last
 * token of the answer before, which was sampled but never computed.
 */
export function freshRows(turn, before) {
  if (!before) return turn.promptTokens;
  return turn.promptTokens - before.promptTokens - before.generatedTokens + 1;
}

/** Each turn with `fresh`, and with `next`, the place of the same agent's next turn in the order (Infinity: none). */
function annotated(turns) {
  const latest = new Map();
  const rows = turns.map((turn) => {
    const before = latest.get(turn.agent);
    latest.set(turn.agent, turn);
    return { ...turn, fresh: freshRows(turn, before), next: Infinity };
  });
  const following = new Map();
  for (let at = rows.length - 1; at >= 0; at--) {
    rows[at].next = following.get(rows[at].agent) ?? Infinity;
    following.set(rows[at].agent, at);
  }
  return rows;
}

/** Every token once: what a cache without bounds computes. `sharedTokens`: the prefix that all agents share. */
export function leastRows(turns, sharedTokens) {
  const agents = new Set(turns.map(({ agent }) => agent)).size;
  const once = annotated(turns).reduce((sum, { fresh }) => sum + fresh, 0);
  return once - sharedTokens * (agents - 1);
}

/**
 * The rows that a cache with room for `contexts` conversations and nothing below computes. When it is full,
 * `leaves(kept, agent)` says who leaves; `kept` has each agent's next turn, in the order of their last one. A shared
 * prefix is found wherever any context is kept.
 */
function rowsKeeping(turns, contexts, sharedTokens, leaves) {
  const kept = new Map();
  let computed = 0;
  for (const { agent, fresh, promptTokens, next } of annotated(turns)) {
    const shared = kept.size > 0 ? sharedTokens : 0;
    computed += kept.has(agent) ? fresh : promptTokens - shared;
    kept.delete(agent);
    kept.set(agent, next);
    if (kept.size > contexts) kept.delete(leaves(kept, agent));
  }
  return computed;
}

function furthest(kept) {
  const [[agent]] = [...kept].toSorted((a, b) => b[1] - a[1]);
  return agent;
}

/** Belady's choice: the one whose next turn is furthest away. */
export function beladyRows(turns, contexts, sharedTokens) {
  return rowsKeeping(turns, contexts, sharedTokens, furthest);
}

/** The one that was used longest ago. */
export function lruRows(turns, contexts, sharedTokens) {
  return rowsKeeping(turns, contexts, sharedTokens, (kept) => [...kept.keys()][0]);
}

/** Who is kept stays to the end of its conversation: newcomers leave as long as the others go on. */
export function pinnedRows(turns, contexts, sharedTokens) {
  return rowsKeeping(turns, contexts, sharedTokens, (kept, agent) => {
    const ended = [...kept].find(([, next]) => next === Infinity);
    return ended?.[0] ?? agent;
  });
}
