/** The addon's codes as errors of the table. */

import { type ErrorCode, FermataError } from "../errors.ts";
import type { NativeFailCode } from "../native/addon-types.ts";

const thrownCodes: Record<string, ErrorCode> = {
  queue_full: "queue_full",
  closed: "engine_closed",
  not_held: "not_held",
  invalid_argument: "invalid_value",
  unreachable: "rpc_server_unreachable",
  grammar_invalid: "invalid_grammar",
  grammar_too_large: "invalid_grammar",
  model_load_failed: "model_invalid",
  out_of_memory: "out_of_memory",
  no_threads: "no_threads",
};

const failCodes: Record<NativeFailCode, ErrorCode> = {
  context_length: "context_length_exceeded",
  lease_expired: "lease_expired",
  decode_failed: "decode_failed",
  out_of_cells: "out_of_cells",
  grammar_failed: "grammar_failed",
  closed: "engine_closed",
  internal: "internal_error",
};

/** What the addon threw, as an error of the table; anything unknown is an `internal_error`. */
export function fromThrown(thrown: unknown): FermataError {
  if (thrown instanceof FermataError) return thrown;
  const code = (thrown as { code?: unknown } | null)?.code;
  const known = typeof code === "string" ? thrownCodes[code] : undefined;
  const told = thrown instanceof Error ? thrown.message : String(thrown);
  // Where the mask engine panics it tells its stack, too: that stays in the cause.
  const [message = told] = told.split("\n<backtrace>", 1);
  return new FermataError(known ?? "internal_error", message, { cause: thrown });
}

/** A generation's failure event as an error of the table. */
export function fromFailure(code: NativeFailCode, message: string): FermataError {
  return new FermataError(failCodes[code], message);
}

/** Runs a call into the addon. @throws FermataError */
export function callNative<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw fromThrown(thrown);
  }
}

/** The same of a call whose result is awaited. @throws FermataError */
export async function awaitNative<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw fromThrown(thrown);
  }
}
