import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { FermataError } from "../../../src/errors.ts";
import { ModelPool } from "../../../src/models/model-pool.ts";
import type { PoolTerms } from "../../../src/models/types.ts";
import { eventually } from "../../support/eventually.ts";
import { fileOf } from "../../support/model-files.ts";

/** Models are their names; `story` tells of loads and unloads in order. */
function world(terms: Partial<PoolTerms<string>> = {}): {
  pool: ModelPool<string>;
  story: string[];
} {
  const story: string[] = [];
  const pool = new ModelPool<string>({
    files: () => ["a", "b", "c", "d"].map(fileOf),
    async load({ name }) {
      await sleep(1);
      story.push(`+${name}`);
      return name;
    },
    async unload(name) {
      await sleep(1);
      story.push(`-${name}`);
    },
    most: 2,
    keepAliveMs: -1,
    ...terms,
  });
  return { pool, story };
}

/** Uses a model for `work`. */
async function use(pool: ModelPool<string>, name: string, work: Promise<unknown> = sleep(1)) {
  const lease = await pool.take(name);
  expect(lease.model).toBe(name);
  lease.until(work);
  await work;
}

/** Work that ends when it is told to. */
function task(): { done: Promise<void>; end(): void } {
  let end = (): void => {};
  const done = new Promise<void>((resolve) => (end = resolve));
  return { done, end: () => end() };
}

const states = (pool: ModelPool<string>): string =>
  pool
    .list()
    .map(({ file: { name }, state, uses }) => `${name}:${state}:${uses}`)
    .join(" ");

test("the model that was used longest ago leaves", async () => {
  const { pool, story } = world();
  for (const name of ["a", "b", "a", "c", "a"]) await use(pool, name);
  expect(story).toEqual(["+a", "+b", "-b", "+c"]);
  expect(pool.loaded()).toEqual(["a", "c"]);
});

test("requests for one model load it once", async () => {
  const { pool, story } = world();
  await Promise.all(Array.from({ length: 5 }, () => use(pool, "a")));
  expect(story).toEqual(["+a"]);
});

test("a model in use stays, and one that must leave takes no new request before it was away", async () => {
  const { pool, story } = world({ most: 1 });
  const first = task();
  const using = use(pool, "a", first.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const other = use(pool, "b");
  const again = use(pool, "a");
  await sleep(20);
  expect(story).toEqual(["+a"]);
  expect(pool.list().map(({ waiting }) => waiting)).toEqual([1, 1, 0, 0]);
  first.end();
  await Promise.all([using, other, again]);
  expect(story).toEqual(["+a", "-a", "+b", "-b", "+a"]);
});

test("a lease lasts until all of its works have settled, failed ones too", async () => {
  const { pool } = world({ most: 1 });
  const [one, two] = [task(), task()];
  const lease = await pool.take("a");
  lease.until(one.done);
  lease.until(two.done.then(() => Promise.reject(new Error("failed"))));
  one.end();
  await sleep(5);
  expect(states(pool)).toContain("a:loaded:1");
  two.end();
  await eventually(() => expect(states(pool)).toContain("a:loaded:0"));
});

test("a pinned model stays", async () => {
  const { pool, story } = world();
  await use(pool, "a");
  pool.pin("a");
  for (const name of ["b", "c"]) await use(pool, name);
  await expect(pool.unload("a")).rejects.toMatchObject({ code: "unsupported_value" });
  expect(story).toEqual(["+a", "+b", "-b", "+c"]);
});

test("a model that is pinned stays, though its time runs already or another one waits for its room", async () => {
  const { pool, story } = world({ keepAliveMs: 5, most: 1 });
  await use(pool, "a");
  pool.pin("a");
  await sleep(30);
  expect(story).toEqual(["+a"]);
  expect(pool.list()[0]).toMatchObject({ state: "loaded", leavesAt: null });

  const { pool: crowded, story: told } = world({ most: 1 });
  const using = task();
  (await crowded.take("a")).until(using.done);
  const gone = new AbortController();
  const other = crowded.take("b", { signal: gone.signal });
  crowded.pin("a");
  using.end();
  await use(crowded, "a");
  gone.abort(new FermataError("cancelled", "gone"));
  await expect(other).rejects.toMatchObject({ code: "cancelled" });
  expect(told).toEqual(["+a"]);
});

test("a load that lacks memory is tried again once another model has left", async () => {
  let room = 1;
  let tries = 0;
  const { pool, story } = world({
    async load({ name }) {
      tries += 1;
      if (room === 0) throw new FermataError("out_of_memory", "no memory");
      room -= 1;
      story.push(`+${name}`);
      return name;
    },
    async unload(name) {
      room += 1;
      story.push(`-${name}`);
    },
  });
  const busy = task();
  const using = use(pool, "a", busy.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const other = use(pool, "b");
  await sleep(20);
  busy.end();
  await Promise.all([using, other]);
  expect(tries).toBe(3);
  expect(story).toEqual(["+a", "-a", "+b"]);
});

test("who waits too long is told what was short", async () => {
  const { pool } = world({
    most: 1,
    patienceMs: 20,
  });
  const busy = task();
  const using = use(pool, "a", busy.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const crowded = "There was no room for b: a are in memory and in use.";
  await expect(pool.take("b")).rejects.toMatchObject({
    code: "model_busy",
    message: expect.stringMatching(new RegExp(`^${crowded} .*--models-max\\.$`)),
  });
  busy.end();
  await using;

  const { pool: short } = world({
    patienceMs: 20,
    async load({ name }) {
      if (name === "b") throw new FermataError("out_of_memory", "no memory");
      return name;
    },
  });
  const working = task();
  const first = use(short, "a", working.done);
  await eventually(() => expect(states(short)).toContain("a:loaded:1"));
  await expect(short.take("b")).rejects.toMatchObject({
    code: "model_busy",
    message: expect.stringMatching(/^There was not enough memory for b: .* smaller --ctx-size/),
  });
  working.end();
  await first;
});

test("a model that no memory is enough for is refused, and so is one that cannot be read", async () => {
  const { pool } = world({
    async load({ name }) {
      throw new FermataError(name === "a" ? "out_of_memory" : "model_invalid", name);
    },
  });
  await expect(pool.take("a")).rejects.toMatchObject({ code: "out_of_memory" });
  await expect(pool.take("b")).rejects.toMatchObject({ code: "model_invalid" });
  expect(states(pool)).toBe("a:unloaded:0 b:unloaded:0 c:unloaded:0 d:unloaded:0");
});

test("an unknown name is told, with the nearest one", async () => {
  const { pool } = world({ files: () => [fileOf("gemma"), fileOf("qwen")] });
  await expect(pool.take("gema")).rejects.toMatchObject({
    code: "not_found",
    param: "model",
    message: 'There is no model "gema". Did you mean gemma? GET /v1/models lists them.',
  });
});

test("a model that nobody uses leaves after its time, which a request may change", async () => {
  const { pool, story } = world({ keepAliveMs: 5 });
  await use(pool, "a");
  await eventually(() => expect(story).toEqual(["+a", "-a"]));
  const lease = await pool.take("b", { keepAliveMs: -1 });
  lease.until(Promise.resolve());
  await sleep(30);
  expect(pool.loaded()).toEqual(["b"]);
  const [, entry] = pool.list();
  expect(entry).toMatchObject({ state: "loaded", leavesAt: null });
});

test("who waits may leave, wait too long, or be one too many", async () => {
  const { pool } = world({ most: 1, patienceMs: 40, mostWaiting: 2 });
  const busy = task();
  const using = use(pool, "a", busy.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const gone = new AbortController();
  const leaving = pool.take("b", { signal: gone.signal });
  const patient = pool.take("c");
  await expect(pool.take("d")).rejects.toMatchObject({ code: "queue_full" });
  gone.abort(new FermataError("cancelled", "gone"));
  await expect(leaving).rejects.toMatchObject({ code: "cancelled" });
  await expect(patient).rejects.toMatchObject({ code: "model_busy" });
  const { signal } = gone;
  for (const name of ["a", "b"])
    await expect(pool.take(name, { signal })).rejects.toMatchObject({ code: "cancelled" });
  expect(states(pool)).toContain("a:loaded:1");
  busy.end();
  await using;
});

test("where who waited has gone, the model that was to make room stays and takes requests again", async () => {
  const { pool, story } = world({ most: 1 });
  const first = task();
  const using = use(pool, "a", first.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const gone = new AbortController();
  const other = pool.take("b", { signal: gone.signal });
  const again = use(pool, "a");
  gone.abort(new FermataError("cancelled", "gone"));
  await expect(other).rejects.toMatchObject({ code: "cancelled" });
  await again;
  first.end();
  await using;
  await use(pool, "a");
  expect(story).toEqual(["+a"]);
  await use(pool, "b");
  expect(story).toEqual(["+a", "-a", "+b"]);
});

test("files that come and go are seen", async () => {
  const names = ["a"];
  const { pool } = world({ files: () => names.map(fileOf) });
  await expect(pool.take("b")).rejects.toMatchObject({ code: "not_found" });
  names.push("b");
  await use(pool, "b");
  expect(pool.has("c")).toBe(false);
});

test("a folder that cannot be read any more refuses who waits for a load", async () => {
  const gone = new FermataError("model_not_found", "The folder cannot be read.");
  let isGone = false;
  const { pool } = world({
    most: 1,
    files() {
      if (isGone) throw gone;
      return ["a", "b"].map(fileOf);
    },
  });
  const using = task();
  const first = use(pool, "a", using.done);
  await eventually(() => expect(states(pool)).toContain("a:loaded:1"));
  const second = pool.take("b");
  isGone = true;
  using.end();
  await first;
  await expect(second).rejects.toMatchObject({ code: "model_not_found" });
  isGone = false;
  await use(pool, "b");
});

test("closing unloads all, refuses who waits and gives a load up", async () => {
  const { pool, story } = world({
    async load({ name }, { signal }) {
      if (name === "a") return name;
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
      return name;
    },
  });
  await use(pool, "a");
  const loading = pool.take("b");
  const refused = expect(loading).rejects.toMatchObject({ code: "engine_closed" });
  await pool.close();
  await pool.close();
  await refused;
  expect(story).toEqual(["-a"]);
  await expect(pool.take("a")).rejects.toMatchObject({ code: "engine_closed" });
});
