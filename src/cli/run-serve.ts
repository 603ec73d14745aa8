/** `fermata serve`: until a signal comes, and what it would refuse at once. */

import { closingMs, leave } from "./closing.ts";
import { withAccess } from "./access.ts";
import type { CommandContext, ParsedArguments } from "./commands/command.ts";
import { configOf } from "./options/config.ts";
import { withPulledModel } from "./pull/pull.ts";
import { onSignals } from "./signals.ts";
import { execFile } from "node:child_process";

/** Beyond the drain, for what runs to be closed. */
const closeGraceMs = 5000;

/** Resolves to null when it serves. @throws FermataError */
export async function runServe(
  { values }: ParsedArguments,
  context: CommandContext,
): Promise<number | null> {
  const given = withAccess(configOf(values, context.env, context.cwd));
  const config = await withPulledModel(given, context);
  const manager = new ServiceManager(context.env);
  const stop = new AbortController();
  const starting = config.supervise
    ? import("./supervisor/supervisor.ts").then(({ supervise }) => supervise(config, stop.signal))
    : import("./serve.ts").then(({ serve }) => serve(config, stop.signal));
  const close = async (): Promise<void> => {
    manager.stopping();
    stop.abort();
    const server = await starting.catch(() => null);
    await server?.close();
  };
  const { drain } = config.processTimeout;
  const note = drain > 0 ? `Answers that run have ${drain} s to end. ` : "";
  closeOnSignal(close, context.err, { note, deadlineMs: closingMs(config) + closeGraceMs });
  if (!process.stderr.isTTY)
    process.on("SIGHUP", () => void starting.then((server) => server.reload()).catch(() => {}));
  try {
    await starting;
    manager.ready();
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
  return null;
}

/** Options, port, MCP servers and model file, but nothing is started. @throws FermataError */
export async function checkServe(
  { values }: ParsedArguments,
  { env, cwd }: CommandContext,
): Promise<void> {
  const config = withAccess(configOf(values, env, cwd));
  // A supervisor needs none of it.
  const { assertPortFree } = await import("./port.ts");
  const { mcpServers } = await import("./load-services.ts");
  const { defaultModel } = await import("./models-folder.ts");
  const { checkGguf } = await import("../engine/gguf-check.ts");
  await assertPortFree(config.port, config.host);
  mcpServers(config);
  if (config.hf === undefined) checkGguf(defaultModel(config).path);
}

/** A terminal that is closed sends SIGHUP, maybe more than once. Without a terminal it is an operator who does. */
const signals: NodeJS.Signals[] = process.stderr.isTTY
  ? ["SIGINT", "SIGTERM", "SIGHUP"]
  : ["SIGINT", "SIGTERM"];

/** @param deadlineMs after which the process leaves, closed or not */
function closeOnSignal(
  close: () => Promise<void>,
  tell: (text: string) => void,
  { note, deadlineMs }: { note: string; deadlineMs: number },
): void {
  let closing = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing && signal === "SIGHUP") return;
    if (closing) process.exit(1);
    closing = true;
    tell(`${signal}: closing. ${note}Once more leaves at once.\n`);
    // A client that does not read, or a server that does not end, must not keep the process.
    setTimeout(() => leave(0), deadlineMs).unref();
    close().then(
      () => leave(0),
      (error: unknown) => {
        tell(`fermata: ${error instanceof Error ? error.message : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  onSignals(signals, onSignal);
}

type State = "READY=1" | "STOPPING=1" | "WATCHDOG=1";

/**
 * Tells systemd how the service is, where it asks for that (NOTIFY_SOCKET). Node has no datagram sockets of this
 * kind, so `systemd-notify` sends: the unit needs `NotifyAccess=all`.
 */
class ServiceManager {
  readonly #isThere: boolean;
  readonly #watchdogMs: number | null;
  #timer: NodeJS.Timeout | undefined;

  constructor({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog }: NodeJS.ProcessEnv) {
    this.#isThere = socket !== undefined && socket !== "";
    this.#watchdogMs = Number(watchdog) > 0 ? Number(watchdog) / 1000 : null;
  }

  /** Requests are taken. From now on the watchdog hears of this process. */
  ready(): void {
    this.#tell("READY=1");
    if (this.#watchdogMs === null) return;
    // Twice as often as it must.
    this.#timer = setInterval(() => this.#tell("WATCHDOG=1"), this.#watchdogMs / 2);
    this.#timer.unref();
  }

  /** Answers may end yet, which takes its time; the watchdog goes on. */
  stopping(): void {
    this.#tell("STOPPING=1");
  }

  /** A machine without the program has no systemd that waits. */
  #tell(state: State): void {
    if (!this.#isThere) return;
    execFile("systemd-notify", [`--pid=${process.pid}`, state], () => {});
  }
}
