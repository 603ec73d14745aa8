/** `fermata serve`: until a signal comes. */

import { withAccess } from "./access.ts";
import type { CommandContext } from "./command.ts";
import { configOf } from "./config.ts";
import type { ParsedArguments } from "./parse-arguments.ts";
import { withPulledModel } from "./pull/run-pull.ts";
import { closeOnSignal } from "./signals.ts";

/** Beyond the drain, for what runs to be closed. */
const closeGraceMs = 5000;

/** Resolves to null when it serves. @throws FermataError */
export async function runServe(
  { values }: ParsedArguments,
  context: CommandContext,
): Promise<number | null> {
  const given = withAccess(configOf(values, context.env, context.cwd));
  const config = await withPulledModel(given, context);
  const stop = new AbortController();
  const starting = config.supervise
    ? import("./supervisor/supervisor.ts").then(({ supervise }) => supervise(config, stop.signal))
    : import("./serve.ts").then(({ serve }) => serve(config, stop.signal));
  const close = async (): Promise<void> => {
    stop.abort();
    const server = await starting.catch(() => null);
    await server?.close();
  };
  closeOnSignal(close, context.err, config.drainSeconds * 1000 + closeGraceMs);
  await starting.catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return null;
}
