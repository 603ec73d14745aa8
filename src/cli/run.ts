/** The command line, apart from the process that it runs in. */

import { FermataError } from "../errors.ts";
import { loadConfig } from "./config.ts";
import { describeFailure } from "./failure.ts";
import { generalHelp, serveHelp } from "./help.ts";
import { didYouMean } from "./nearest.ts";
import { packageVersion } from "./package-files.ts";
import { closeOnSignal } from "./signals.ts";

export interface CommandContext {
  cwd: string;
  env: NodeJS.ProcessEnv;
  out: (text: string) => void;
  err: (text: string) => void;
}

const commands = ["serve"];
/** Beyond the drain, for what runs to be closed. */
const closeGraceMs = 5000;

/** Resolves to the exit code, or to null while a server runs. Never rejects. */
export async function runCommandLine(
  args: readonly string[],
  context: CommandContext,
): Promise<number | null> {
  try {
    return await dispatch(args, context);
  } catch (error) {
    const { text, exitCode } = describeFailure(error);
    context.err(text);
    return exitCode;
  }
}

async function dispatch(args: readonly string[], context: CommandContext): Promise<number | null> {
  const [command = "--help", ...rest] = args;
  if (command === "--help" || command === "-h" || command === "help")
    return print(context, generalHelp);
  if (command === "--version" || command === "-v") return print(context, `${packageVersion()}\n`);
  if (command !== "serve") throw unknownCommand(command);
  if (rest.includes("--help") || rest.includes("-h")) return print(context, serveHelp());

  const config = loadConfig({ args: rest, env: context.env, cwd: context.cwd });
  const stop = new AbortController();
  // Help and mistakes need no engine.
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

function print(context: CommandContext, text: string): number {
  context.out(text);
  return 0;
}

function unknownCommand(command: string): FermataError {
  const hint = command.startsWith("-")
    ? ` Options come after the command: fermata serve ${command}`
    : didYouMean(command, commands);
  return new FermataError("invalid_option", `Unknown command ${command}.${hint}`, {
    param: command,
  });
}
