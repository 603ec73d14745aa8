/**
 * Keeps the service up when the engine's process dies: llama.cpp aborts on faults that no check can
 * foresee, and an abort takes the process. The supervisor owns the port and accepts connections, the
 * worker has everything else. A token never passes through here.
 *
 *   starting -> serving -> (worker dies) -> pausing -> starting …
 *       any of them -> closing
 */

import { closingMs } from "../closing.ts";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { type BannerFacts, bannerText } from "../banner.ts";
import { WorkerExit } from "../failure.ts";
import { createLogger } from "../logger.ts";
import { collectNowAndThen } from "../memory.ts";
import type { ServeConfig } from "../options/serve-options.ts";
import { compiledFile } from "../../package-root.ts";
import { ProcessGuard } from "../../process-guard.ts";
import { assertPortFree, listenBare } from "../port.ts";
import type { RunningServer } from "../serve.ts";
import { Connections, refuse } from "./connections.ts";
import { type Hang, Pulse } from "./pulse.ts";
import type { ConnectionState, InFlight } from "../../server/http/connection-reports.ts";
import { RecentMap } from "../../recent-map.ts";

/**
 * glibc raises the size from which memory is mapped, and so given back, with each large piece that is freed. What
 * compiles grammars frees many: without these settings the worker keeps up to 140 MB that nothing uses. Other
 * allocators pass them over.
 */
const allocator = { MALLOC_MMAP_THRESHOLD_: "131072", MALLOC_TRIM_THRESHOLD_: "131072" };

const shortestPauseMs = 250;
const longestPauseMs = 30_000;
/** A worker that served for so long did not die of its start. */
const healthyMs = 60_000;
/** Beyond the drain, for the worker to close what it holds. */
const closeGraceMs = 4000;

/** Of native/llama/rpc_sockets.h. */
const peerLostExitCode = 69;

type State = "starting" | "serving" | "pausing" | "closing";

/**
 * `signal` gives the start up, wherever it is.
 * @throws FermataError port_in_use | invalid_option, or a WorkerExit: the worker has said why; once
 * `signal` came, its reason or the WorkerExit that it led to
 */
export async function supervise(config: ServeConfig, signal: AbortSignal): Promise<RunningServer> {
  const supervisor = new Supervisor(config);
  signal.addEventListener("abort", () => void supervisor.close(), { once: true });
  if (process.platform !== "win32") process.on("SIGTSTP", () => supervisor.suspend());
  await supervisor.start(signal);
  return supervisor;
}

class Supervisor implements RunningServer {
  readonly #config: ServeConfig;
  readonly #log: Logger;
  readonly #server: Server;
  readonly #connections = new Connections();
  readonly #suspects = new Suspects();
  /** A worker leaves by itself when its supervisor is gone, but not one that hangs. */
  readonly #guard = new ProcessGuard();
  readonly #stopCollecting = collectNowAndThen();
  #state: State = "starting";
  #worker: ChildProcess | null = null;
  #pauseMs = shortestPauseMs;
  #closing: Promise<void> | null = null;
  url = "";

  constructor(config: ServeConfig) {
    this.#config = config;
    this.#log = createLogger(config.logLevel, process.stderr);
    // Not a byte is read here: the worker's copy of the socket is the one that reads.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) =>
      this.#take(socket),
    );
  }

  /** Resolves once the first worker serves. @throws as `supervise` */
  async start(signal: AbortSignal): Promise<void> {
    const { port, host } = this.#config;
    await assertPortFree(port, host);
    signal.throwIfAborted();
    const facts = await this.#startWorker();
    try {
      this.url = await listenBare(this.#server, port, host);
      signal.throwIfAborted();
    } catch (error) {
      await this.close();
      throw error;
    }
    process.stdout.write(bannerText({ ...facts, url: this.url }));
  }

  /** Lets running answers end, then the worker. New requests get 503 from it meanwhile. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  reload(): void {
    if (this.#worker !== null) this.#send(this.#worker, { type: "reload" });
  }

  /** Ctrl-Z. Goes on when a shell lets this process go on. */
  suspend(): void {
    const worker = this.#worker;
    worker?.kill("SIGSTOP");
    process.kill(process.pid, "SIGSTOP");
    worker?.kill("SIGCONT");
  }

  async #close(): Promise<void> {
    this.#state = "closing";
    const worker = this.#worker;
    if (worker !== null) {
      const ended = once(worker, "exit");
      this.#send(worker, { type: "close" });
      const deadline = closingMs(this.#config) + closeGraceMs;
      const timer = setTimeout(() => worker.kill("SIGKILL"), deadline);
      const { notice } = this.#config.processTimeout;
      // A proxy tries another server where nobody listens, but not after a 503.
      const refusing =
        notice === 0 ? undefined : setTimeout(() => this.#server.close(), notice * 1000);
      await ended;
      clearTimeout(timer);
      clearTimeout(refusing);
    }
    this.#server.close();
    this.#connections.endAll();
    this.#stopCollecting();
  }

  /** Resolves when the worker serves. @throws WorkerExit, if it ends before */
  async #startWorker(): Promise<Omit<BannerFacts, "url">> {
    this.#state = "starting";
    const worker = fork(fileURLToPath(compiledFile("cli/worker.js")), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      // A session of its own: Linux shares the cores among sessions first (sched_autogroup), so
      // what else runs in this terminal leaves the model half of them, however many processes it is.
      detached: process.platform !== "win32",
      env: { ...allocator, ...process.env },
    });
    this.#worker = worker;
    const { pid = 0 } = worker;
    this.#guard.add(pid);
    const pulse = new Pulse(this.#config.processTimeout, (hang) => this.#endHanging(worker, hang));
    const exited = new Promise<WorkerExit>((resolve) => {
      worker.once("exit", (code, signal) => {
        this.#guard.remove(pid);
        pulse.stop();
        resolve(new WorkerExit(code, signal));
      });
    });
    // A message to a worker that is just dying; its end is told by `exit`.
    worker.on("error", (error) => this.#log.debug({ error: error.message }, "worker unreachable"));
    const ready = new Promise<Omit<BannerFacts, "url">>((resolve) => {
      worker.on("message", (message: FromWorker) => {
        if (message.type === "ready") resolve(message.facts);
        else if (message.type === "alive") pulse.beat(message.stepAgeMs);
        else if (message.type === "connection") this.#update(message.id, message.state);
        else this.#connections.remove(message.id);
      });
    });
    const crashes = this.#suspects.crashes();
    this.#send(worker, { type: "start", config: this.#config, crashes });
    const first = await Promise.race([ready, exited]);
    // It became ready before it read that it shall close.
    const outcome = (this.#state as State) === "closing" ? await exited : first;
    if (outcome instanceof WorkerExit) {
      this.#worker = null;
      throw outcome;
    }
    this.#state = "serving";
    const startedAt = performance.now();
    this.#log.info({ pid: worker.pid }, "worker ready");
    void exited.then((exit) => this.#onDeath(exit, performance.now() - startedAt));
    return outcome;
  }

  #update(id: number, state: ConnectionState): void {
    this.#connections.update(id, state);
    if (state.kind === "idle" && state.answered !== null) this.#suspects.clear(state.answered);
  }

  /** Its end is told by `exit`, as any other. */
  #endHanging(worker: ChildProcess, { thread, seconds }: Hang): void {
    this.#log.error({ pid: worker.pid, thread, seconds }, "the worker hangs and is killed");
    worker.kill("SIGKILL");
  }

  #onDeath({ code, signal }: WorkerExit, livedMs: number): void {
    this.#worker = null;
    const requests = this.#connections.endAll();
    if (this.#state === "closing") return;
    // A lost RPC server is no fault of what was asked.
    if (code !== peerLostExitCode) this.#suspects.add(requests);
    if (livedMs >= healthyMs) this.#pauseMs = shortestPauseMs;
    this.#log.error(
      {
        code,
        signal,
        pause_ms: this.#pauseMs,
        in_flight: requests.map(({ requestId }) => requestId),
      },
      "the worker ended abnormally: its streams are closed, it is started again",
    );
    void this.#restart();
  }

  /** Until a worker serves, or the service closes. */
  async #restart(): Promise<void> {
    for (;;) {
      this.#state = "pausing";
      const pauseMs = this.#pauseMs;
      this.#pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      await sleep(pauseMs);
      // close() came meanwhile.
      if ((this.#state as State) === "closing") return;
      try {
        await this.#startWorker();
        return;
      } catch (exit) {
        if ((this.#state as State) === "closing") return;
        const { code, signal } = exit as WorkerExit;
        this.#log.error({ code, signal, pause_ms: this.#pauseMs }, "the worker does not start");
      }
    }
  }

  #take(socket: Socket): void {
    const worker = this.#worker;
    if (worker === null || this.#state === "starting") {
      refuse(socket, Math.ceil(this.#pauseMs / 1000));
      return;
    }
    const id = this.#connections.add(socket);
    worker.send(
      { type: "connection", id } satisfies ToWorker,
      socket,
      { keepOpen: true },
      () => {},
    );
  }

  #send(worker: ChildProcess, message: ToWorker): void {
    worker.send(message, () => {});
  }
}

export type ToWorker =
  /** Comes first, once. `crashes`: by hashes of bodies. */
  | { type: "start"; config: ServeConfig; crashes: [bodyHash: string, count: number][] }
  /** Comes with the socket, once the worker is ready. */
  | { type: "connection"; id: number }
  | { type: "reload" }
  /** Drain and end. */
  | { type: "close" };

export type FromWorker =
  /** Once a second. `stepAgeMs`: of the inference thread's current step; 0 while it is idle. */
  | { type: "alive"; stepAgeMs: number }
  | { type: "ready"; facts: Omit<BannerFacts, "url"> }
  | { type: "connection"; id: number; state: ConnectionState }
  | { type: "connection-closed"; id: number };

/** The oldest are forgotten first. */
const maxSuspects = 10_000;

/** Bodies that were in flight when a worker died: one of them may have killed it, and would do so again. */
class Suspects {
  /** Deaths by body. */
  readonly #crashes = new RecentMap<string, number>(maxSuspects);

  add(requests: readonly InFlight[]): void {
    const hashes = new Set(requests.flatMap(({ bodyHash }) => bodyHash ?? []));
    for (const hash of hashes) {
      this.#crashes.set(hash, (this.#crashes.get(hash) ?? 0) + 1);
    }
  }

  /** A worker has answered it. */
  clear(bodyHash: string): void {
    this.#crashes.delete(bodyHash);
  }

  crashes(): [bodyHash: string, count: number][] {
    return [...this.#crashes];
  }
}
