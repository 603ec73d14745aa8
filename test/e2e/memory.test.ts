// What a process keeps of the memory that it used. In processes of their own. Needs `npm run build`.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addonPath } from "../../src/native/addon.ts";

const library = pathToFileURL(join(import.meta.dirname, "../../dist/cli/memory.js")).href;

function figures<Figures>(program: string, ...args: string[]): Figures {
  const given = ["--expose-gc", "--input-type=module", "-e", program, ...args];
  return JSON.parse(execFileSync(process.execPath, given, { encoding: "utf8" })) as Figures;
}

/** Pieces that glibc takes from its heap; one that stays lies behind them. */
const keepOne = `
import { createRequire } from "node:module";
const { giveBackMemory } = createRequire("/")(process.argv[1]);
const megabytes = () => Math.round(process.memoryUsage.rss() / 2 ** 20);
const before = megabytes();
let pieces = Array.from({ length: 2000 }, () => Buffer.alloc(64 * 1024, 1));
const full = megabytes();
const last = pieces.at(-1);
pieces = null;
gc();
await new Promise((resolve) => setImmediate(resolve));
gc();
const freed = megabytes();
await giveBackMemory();
console.log(JSON.stringify({ before, full, freed, after: megabytes(), last: last.length }));
`;

test.runIf(existsSync("/lib64/ld-linux-x86-64.so.2"))(
  "freed memory goes back to the system, though a piece behind it is in use",
  () => {
    type Figures = Record<"before" | "full" | "freed" | "after", number>;
    const { before, full, freed, after } = figures<Figures>(keepOne, addonPath());
    // 125 MiB: glibc itself would keep them.
    expect(full - before).toBeGreaterThan(110);
    expect(freed - before).toBeGreaterThan(80);
    expect(after - before).toBeLessThan(40);
  },
);

/** 40 MiB that live, and many times as much that lives long enough to become old. */
const makeGarbage = `
const { boundHeap } = await import(process.argv[1]);
const { getHeapStatistics } = await import("node:v8");
if (process.argv[2] === "bound") boundHeap();
const words = (count) => Array.from({ length: count }, (_, index) => ({ index }));
const living = words(800_000);
gc();
const alive = getHeapStatistics().used_heap_size;
const passing = [];
let most = 0;
for (let round = 0; round < 200; round++) {
  passing[round % 20] = words(20_000);
  most = Math.max(most, getHeapStatistics().used_heap_size);
}
console.log(JSON.stringify({ alive, most, kept: living.length }));
`;

test("the heap grows little between collections", () => {
  type Figures = Record<"alive" | "most", number>;
  const free = figures<Figures>(makeGarbage, library, "free");
  const bound = figures<Figures>(makeGarbage, library, "bound");
  expect(bound.most - bound.alive).toBeLessThan((free.most - free.alive) * 0.75);
});
