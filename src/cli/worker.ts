/** The process that a supervisor starts: the whole service but the port. */

import type { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { ConnectionReports } from "../server/http/connection-reports.ts";
import type { Crashes } from "../server/http/quarantine.ts";
import { describeFailure } from "./failure.ts";
import { leave, savingMs } from "./closing.ts";
import type { ServeConfig } from "./options/serve-options.ts";
import { startService, type Service } from "./serve.ts";
import { pulseMs } from "./supervisor/pulse.ts";
import type { FromWorker, ToWorker } from "./supervisor/supervisor.ts";

/** For the last bytes of the answers to leave. */
const lingerMs = 1000;

let savingTimeMs = 0;

const ids = new Map<Socket, number>();
const stop = new AbortController();
let starting: Promise<Service> | null = null;
let stepAgeMs = (): number => 0;

// The supervisor passes signals on, in its own time; a service manager sends them to the worker as well.
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
// Nobody accepts connections for this process any more.
process.on("disconnect", () => process.exit(1));
process.on("message", (message: ToWorker, socket?: Socket) => {
  if (message.type === "start") starting = start(message.config, new Map(message.crashes));
  else if (message.type === "connection") void accept(message.id, socket);
  else if (message.type === "reload") void starting?.then((service) => service.reload());
  else void close();
});

setInterval(() => tell({ type: "alive", stepAgeMs: stepAgeMs() }), pulseMs).unref();

const reports: ConnectionReports = {
  report: (socket, state) => {
    const id = ids.get(socket);
    if (id !== undefined) tell({ type: "connection", id, state });
  },
};

async function start(config: ServeConfig, crashes: Crashes): Promise<Service> {
  try {
    savingTimeMs = savingMs(config);
    const service = await startService(config, stop.signal, {
      connectionReports: reports,
      crashes,
    });
    stepAgeMs = service.stepAgeMs;
    await service.app.ready();
    // The limits on slow requests are watched for listening servers only.
    service.app.server.emit("listening");
    tell({ type: "ready", facts: service.facts });
    return service;
  } catch (error) {
    if (stop.signal.aborted) process.exit(0);
    const { text, exitCode } = describeFailure(error);
    process.stderr.write(text);
    process.exit(exitCode);
  }
}

async function accept(id: number, socket: Socket | undefined): Promise<void> {
  // The client left before the socket came.
  if (socket === undefined || starting === null) {
    tell({ type: "connection-closed", id });
    return;
  }
  ids.set(socket, id);
  socket.once("close", () => {
    ids.delete(socket);
    tell({ type: "connection-closed", id });
  });
  const { app } = await starting;
  app.server.emit("connection", socket);
}

async function close(): Promise<void> {
  stop.abort();
  const service = await starting;
  await service?.app.close();
  // What was written leaves, and the client hears that nothing follows.
  const left = [...ids.keys()].map((socket) => new Promise<void>((done) => socket.end(done)));
  const closing = service?.close();
  await Promise.race([Promise.all([...left, closing]), setTimeout(lingerMs)]);
  if (savingTimeMs > 0) await Promise.race([closing, setTimeout(savingTimeMs)]);
  leave(0);
}

function tell(message: FromWorker): void {
  process.send?.(message);
}
