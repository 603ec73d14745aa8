import { describe, expect, test } from "vitest";
import {
  BegunWork,
  LiveRun,
  type LiveRunOptions,
  LiveRuns,
} from "../../../src/server/answer/live-run.ts";
import { FermataError } from "../../../src/errors.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function liveRun(keep: LiveRunOptions<number>["keep"], abort = new AbortController()) {
  return new LiveRun<number>({ id: "run_1", owner: "me", abort, numberOf: (it) => it, keep });
}

async function readAll(run: LiveRun<number>, after: number, viewer?: AbortSignal) {
  const read: number[] = [];
  for await (const event of run.read(after, viewer)) read.push(event);
  return read;
}

describe("a run that outlives its connection", () => {
  test("keeps each event before anybody sees it, and waits for no reader", async () => {
    const kept: number[] = [];
    const run = liveRun(async (events) => void kept.push(...events));
    const first = run.read(0).next();
    await run.publish(1);
    expect(await first).toEqual({ done: false, value: 1 });
    await run.publish(2);
    expect(kept).toEqual([1, 2]);
    const early = readAll(run, 0);
    const late = readAll(run, 2);
    await run.publish(3);
    run.finish(4);
    expect([await early, await late, await readAll(run, 3)]).toEqual([[1, 2, 3, 4], [3, 4], [4]]);
  });

  test("keeps events of one moment together, and tells none of them before", async () => {
    const kept: (readonly number[])[] = [];
    let written = (): void => {};
    const run = liveRun(async (events) => {
      kept.push(events);
      await new Promise<void>((resolve) => (written = resolve));
    });
    const reading = readAll(run, 0);
    const publishing = run.publish(1, 2);
    await turn();
    const early = run.read(0).next();
    expect(await Promise.race([early, turn()])).toBeUndefined();
    written();
    await publishing;
    run.finish();
    expect([kept, await early, await reading]).toEqual([
      [[1, 2]],
      { done: false, value: 1 },
      [1, 2],
    ]);
  });

  test("a viewer that leaves takes nobody with it", async () => {
    const run = liveRun(async () => {});
    const gone = new AbortController();
    const left = readAll(run, 0, gone.signal);
    const stays = readAll(run, 0);
    await run.publish(1);
    await turn();
    gone.abort();
    expect(await left).toEqual([1]);
    await run.publish(2);
    run.finish();
    expect(await stays).toEqual([1, 2]);
  });
});

describe("a run of a connection", () => {
  test("waits until its reader has taken each event, and tells it what failed", async () => {
    const run = liveRun(null);
    let published = 0;
    const publishing = (async () => {
      for (const event of [1, 2]) {
        await run.publish(event);
        published = event;
      }
      run.finish(undefined, { error: new FermataError("internal_error", "The disk is full.") });
    })();
    await turn();
    expect(published).toBe(0);
    const reader = run.read(0);
    expect(await reader.next()).toEqual({ done: false, value: 1 });
    await turn();
    expect(published).toBe(0);
    expect(await reader.next()).toEqual({ done: false, value: 2 });
    expect(published).toBe(1);
    await expect(reader.next()).rejects.toThrow("The disk is full.");
    await publishing;
  });

  test("goes on when its reader has left", async () => {
    const run = liveRun(null);
    const reading = run.read(0);
    const first = reading.next();
    const publishing = run.publish(1);
    await first;
    await reading.return();
    await publishing;
    await run.publish(2);
  });
});

test("runs that go on are found by their owner until they end", async () => {
  const runs = new LiveRuns<LiveRun<number>>();
  const abort = new AbortController();
  const run = liveRun(async () => {}, abort);
  runs.add(run);
  expect([runs.find("me", "run_1"), runs.find("you", "run_1")]).toEqual([run, null]);
  abort.signal.addEventListener("abort", () => run.finish());
  await runs.cancel([run], new FermataError("cancelled", "Enough."));
  expect(abort.signal.reason).toMatchObject({ code: "cancelled" });
  expect(runs.find("me", "run_1")).toBeNull();
});

test("an expected run that is given up begins at once, and those behind it still wait for those before it", async () => {
  const { expected } = new LiveRuns<LiveRun<number>>();
  const begun: string[] = [];
  let loaded = (): void => {};
  const loading = new Promise<void>((resolve) => (loaded = resolve));
  const add = (id: string): Promise<void> =>
    expected.add({ id, owner: "me", model: "big", abort: new AbortController() }, async () => {
      begun.push(id);
      if (id === "run_1") await loading;
    });
  const all = ["run_1", "run_2", "run_3"].map(add);
  await expected.giveUp("run_2", new FermataError("cancelled", "Enough."));
  await turn();
  expect(begun).toEqual(["run_1", "run_2"]);
  loaded();
  await Promise.all(all);
  expect(begun).toEqual(["run_1", "run_2", "run_3"]);
  expect(expected.size).toBe(0);
});

describe("work that has begun", () => {
  test("holds its first event back until it is delivered", async () => {
    const told: number[] = [];
    const work = new BegunWork<number>(async (sink) => {
      for (const event of [1, 2]) {
        told.push(event);
        await sink(event);
      }
    });
    await work.first;
    await turn();
    expect(told).toEqual([1]);
    const read: number[] = [];
    await work.deliver(async (event) => void read.push(event));
    expect(read).toEqual([1, 2]);
  });

  test("that fails before its first event says so, and work that is abandoned ends", async () => {
    const failing = new BegunWork<number>(async () => {
      throw new FermataError("queue_full", "Try again later.");
    });
    await expect(failing.first).rejects.toMatchObject({ code: "queue_full" });
    let ended = false;
    const work = new BegunWork<number>(async (sink) => {
      try {
        await sink(1);
      } finally {
        ended = true;
      }
    });
    await work.first;
    await work.abandon(new FermataError("cancelled", "Nobody wants it."));
    expect(ended).toBe(true);
  });
});
