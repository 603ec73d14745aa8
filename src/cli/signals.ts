/**
 * Below npm and npx, a Ctrl-C comes twice: from the terminal, and from npm, which passes on what it got. The same signal
 * within this time is not a second one.
 */
const copyMs = 500;

/** Calls `handle` for each of these signals, copies left out. Returns what ends that. */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  handle: (signal: NodeJS.Signals) => void,
): () => void {
  const handledAt = new Map<NodeJS.Signals, number>();
  const listener = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (now - (handledAt.get(signal) ?? -Infinity) < copyMs) return;
    handledAt.set(signal, now);
    handle(signal);
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

/** Calls `handle` at the first of these signals. The next one ends the process, as without this. Returns what ends that. */
export function onFirstSignal(signals: readonly NodeJS.Signals[], handle: () => void): () => void {
  let isFirst = true;
  const off = onSignals(signals, (signal) => {
    if (isFirst) handle();
    else {
      off();
      process.kill(process.pid, signal);
    }
    isFirst = false;
  });
  return off;
}
