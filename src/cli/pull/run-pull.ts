/** `fermata pull`, and the model that `fermata serve --hf` names. */

import { join } from "node:path";
import type { CommandContext } from "../command.ts";
import { fromEnvironment, mergeLayers } from "../option-values.ts";
import type { ServeConfig } from "../options.ts";
import type { ParsedArguments } from "../parse-arguments.ts";
import { userFolder } from "../user-folders.ts";
import { hubOptions, pullOptions } from "./command.ts";
import { listRepository, pullModel } from "./pull.ts";
import type { ProgressOutput } from "./transfer-progress.ts";

/** The path goes to standard output, everything else to standard error. @throws FermataError */
export async function runPull(
  { values, operands }: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  const { env, cwd } = context;
  const options = mergeLayers(pullOptions, [values, fromEnvironment(pullOptions, env, cwd)]);
  const request = {
    ...options,
    model: operands[0]!,
    modelsFolder: options.modelsDir ?? defaultModelsFolder(env),
  };
  return interruptible(async (signal) => {
    const pull = { signal, output: progressOutput(context) };
    const lines = options.list
      ? await listRepository(request, pull)
      : [await pullModel(request, pull)];
    for (const line of lines) context.out(`${line}\n`);
    return 0;
  });
}

/** `config` with the path of what `--hf` names. @throws FermataError */
export async function withPulledModel(
  config: ServeConfig,
  context: CommandContext,
): Promise<ServeConfig> {
  const { hf, file, modelsDir } = config;
  if (hf === undefined) return config;
  const hub = mergeLayers(hubOptions, [fromEnvironment(hubOptions, context.env, context.cwd)]);
  const modelsFolder = modelsDir ?? defaultModelsFolder(context.env);
  const model = await interruptible((signal) =>
    pullModel(
      { ...hub, model: hf, file, modelsFolder },
      { signal, output: progressOutput(context) },
    ),
  );
  return { ...config, model };
}

function defaultModelsFolder(env: NodeJS.ProcessEnv): string {
  return join(userFolder("cache", env), "models");
}

/** SIGINT and SIGTERM end it, and leave what is there for the next time. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  try {
    return await work(stop.signal);
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

function progressOutput({ err }: CommandContext): ProgressOutput {
  return {
    write: err,
    isTerminal: process.stderr.isTTY,
    columns: () => process.stderr.columns ?? 80,
  };
}
