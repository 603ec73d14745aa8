/** A person's decision about a call, sent until the server has it. */

import { pause } from "./pause.ts";

interface Sending {
  /** Ends it: the run has ended, for example. */
  signal?: AbortSignal | undefined;
  /** Before it is sent again; then twice as long each time, at most 10 s. Default: 500 ms. */
  firstWaitMs?: number | undefined;
}

const maxAttempts = 10;
const longestWaitMs = 10_000;

/**
 * Sends it again while the server cannot be reached or is not well. A decision that names its question answers no other one, so
 * that one that arrives twice does no harm; one that names none (null) is sent once.
 * @returns `settled`: the call had its decision before one attempt; an earlier attempt's, or somebody else's
 * @param askingId of the question, as its `approval` detail has it
 * @param send rejects with an error that has the `status` of the answer, 0 for none, and its `code`
 * @throws what `send` rejected with at last, and the reason of `signal`
 */
export async function sendDecision(
  askingId: string | null,
  send: () => Promise<void>,
  { signal, firstWaitMs = 500 }: Sending = {},
): Promise<"sent" | "settled"> {
  for (let attempt = 1; ; attempt++) {
    try {
      await send();
      return "sent";
    } catch (error) {
      const { status, code } = error as { status?: unknown; code?: unknown };
      if (attempt > 1 && code === "already_decided") return "settled";
      if (!mayComeRight(status) || askingId === null || attempt === maxAttempts) throw error;
    }
    await pause(Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1)), signal);
  }
}

function mayComeRight(status: unknown): boolean {
  return typeof status === "number" && (status === 0 || status === 429 || status >= 500);
}
