/** SIGINT and SIGTERM: the first closes, the second leaves at once. */

const signals = ["SIGINT", "SIGTERM"] as const;

/** @param deadlineMs after which the process leaves, closed or not */
export function closeOnSignal(
  close: () => Promise<void>,
  note: (text: string) => void,
  deadlineMs: number,
): void {
  let closing = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing) process.exit(1);
    closing = true;
    note(`${signal}: closing. Once more leaves at once.\n`);
    // A client that does not read, or a server that does not end, must not keep the process.
    setTimeout(() => process.exit(0), deadlineMs).unref();
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        note(`fermata: ${error instanceof Error ? error.message : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of signals) process.on(signal, onSignal);
}
