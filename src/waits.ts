/** What waiting takes that Node does not have. */

/** The longest delay of a timer: about 24 days. */
export const longestDelayMs = 2 ** 31 - 1;

/** Resolves when `signal` is aborted. It leaves a listener on the signal until then. */
export async function abortionOf(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}
