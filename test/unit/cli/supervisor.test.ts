// The supervisor with a fake in its worker's place, which says what it says in a given order.
import childProcess, { type ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WorkerExit } from "../../../src/cli/failure.ts";
import { supervise } from "../../../src/cli/supervisor/supervisor.ts";
import { eventually } from "../../support/eventually.ts";
import { serveConfig } from "../../support/serve-config.ts";

class FakeWorker extends EventEmitter {
  /** Of no process. */
  readonly pid = 2 ** 30;
  readonly told: string[] = [];
  send({ type }: { type: string }): boolean {
    this.told.push(type);
    return true;
  }
}

let workers: FakeWorker[];
let said: string;
beforeEach(() => {
  workers = [];
  said = "";
  vi.spyOn(childProcess, "fork").mockImplementation(() => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker as unknown as ChildProcess;
  });
  syncBuiltinESMExports();
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, "write").mockImplementation((text) => {
      said += String(text);
      return true;
    });
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const config = serveConfig(["--port=0", "--process-timeout=drain=0"], {}, import.meta.dirname);

test("a signal just before the worker is ready: it is told to close, and nothing is served", async () => {
  const stop = new AbortController();
  const starting = supervise(config, stop.signal);
  const refused = expect(starting).rejects.toEqual(new WorkerExit(0, null));
  await eventually(() => expect(workers).toHaveLength(1));
  const [worker] = workers;
  stop.abort();
  // It had said so before it read that it shall close.
  worker!.emit("message", { type: "ready", facts: {} });
  expect(worker!.told).toEqual(["start", "close"]);
  await new Promise((resolve) => setImmediate(resolve));
  worker!.emit("exit", 0, null);
  await refused;
  expect(said).toBe("");
  expect(workers).toHaveLength(1);
});

test("a signal before there is a worker: none is started", async () => {
  const stop = new AbortController();
  const starting = supervise(config, stop.signal);
  stop.abort();
  await expect(starting).rejects.toThrow("abort");
  const before = supervise(config, stop.signal);
  await expect(before).rejects.toThrow("abort");
  expect(workers).toEqual([]);
});
