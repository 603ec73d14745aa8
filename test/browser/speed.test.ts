// How much is loaded, parsed and drawn. Counts are asserted; times are told, since a machine that does
// other things as well gives none that could be held to: FERMATA_FRAMES=1 holds them to their bounds.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { delegated, markdownPage } from "./support/answers.ts";
import { openPage } from "./support/browser.ts";
import { FakeApi } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

const holdsTimes = process.env.FERMATA_FRAMES === "1";
const frameMs = 16;

test("the first load is under 300 kB compressed, and what it does not need comes later", async () => {
  open.api = await new FakeApi({}).listen();
  const loaded: { name: string; bytes: number }[] = [];
  const context = await open.browser.newContext();
  const page = await context.newPage();
  page.on("response", async (response) => {
    const path = new URL(response.url()).pathname;
    if (path.startsWith("/api")) return;
    loaded.push({ name: path, bytes: (await response.request().sizes()).responseBodySize });
  });
  await page.goto(open.api.url);
  await page.locator("#message").waitFor();
  await page.waitForLoadState("load");
  await expect.poll(() => loaded.length).toBeGreaterThanOrEqual(3);
  const total = loaded.reduce((sum, { bytes }) => sum + bytes, 0);
  console.log(`first load: ${(total / 1000).toFixed(1)} kB in ${loaded.length} files`);
  expect(total).toBeGreaterThan(20_000);
  expect(total).toBeLessThan(300_000);
  const names = loaded.map(({ name }) => name).join(" ");
  expect(names).not.toMatch(/math|highlight/);
  await context.close();
});

test("nothing that is loaded names another host to load from", () => {
  const folder = fileURLToPath(new URL("../../ui/dist/assets/", import.meta.url));
  const names = readdirSync(folder).filter((name) => /\.(js|css)$/.test(name));
  expect(names.length).toBeGreaterThan(2);
  for (const name of names)
    expect(readFileSync(`${folder}${name}`, "utf8")).not.toMatch(/url\(["']?(?:https?:)?\/\//);
});

/** Durations of the main thread's work in each frame, from its first callback to its paint. */
async function measureFrames(page: Page, work: () => Promise<void>): Promise<number[]> {
  await page.evaluate(() => {
    const frames: number[] = [];
    const state = { frames, isOn: true };
    Object.assign(globalThis, { frameState: state });
    const channel = new MessageChannel();
    let began = 0;
    // The message comes right after the frame that was begun is drawn.
    channel.port1.onmessage = () => frames.push(performance.now() - began);
    const tick = (): void => {
      began = performance.now();
      channel.port2.postMessage(null);
      if (state.isOn) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await work();
  return page.evaluate(() => {
    const { frameState } = globalThis as unknown as {
      frameState: { frames: number[]; isOn: boolean };
    };
    frameState.isOn = false;
    return frameState.frames;
  });
}

function p95(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? 0;
}

function report(what: string, frames: readonly number[]): void {
  const longest = Math.max(...frames);
  console.log(
    `${what}: ${frames.length} frames, p95 ${p95(frames).toFixed(1)} ms, longest ${longest.toFixed(1)} ms`,
  );
  expect(frames.length).toBeGreaterThan(20);
  if (holdsTimes) expect(p95(frames)).toBeLessThan(frameMs);
}

test("four streams side by side", async () => {
  const texts = [0, 1, 2, 3].map((index) => `Stream ${index}.\n\n${markdownPage.repeat(4)}`);
  open.api = await new FakeApi({
    // Four sub-agents at 60 pieces of 16 characters a second each: faster than anybody reads.
    answer: () => delegated(texts, 16, 16),
  }).listen();
  open.watched = await openPage(open.browser, open.api.url, { reducedMotion: "no-preference" });
  const { page } = open.watched;
  const frames = await measureFrames(page, async () => {
    await page.locator("#message").fill("Read all four");
    await page.keyboard.press("Enter");
    await page.locator(".message.assistant[data-status=complete]").waitFor({ timeout: 120_000 });
  });
  report("four streams", frames);
  expect(await page.locator(".agent-turn").count()).toBe(4);
  for (const index of [0, 1, 2, 3]) {
    expect(await page.locator(".agent-turn").nth(index).locator("table").count()).toBe(4);
  }
  expect(open.watched.problems).toEqual([]);
});

test("a conversation of 200,000 characters scrolls, with little of it in the document", async () => {
  const answer = markdownPage.repeat(2);
  const rounds = Math.ceil(200_000 / answer.length);
  const texts = Array.from({ length: rounds }, (_, index) => [`Question ${index}`, answer]).flat();
  open.api = await new FakeApi({}).listen();
  const id = open.api.addConversation("Long", texts);
  open.watched = await openPage(open.browser, `${open.api.url}/c/${id}`, {
    reducedMotion: "no-preference",
  });
  const { page } = open.watched;
  const scroller = page.locator(".message-scroll");
  await page.locator(".bubble", { hasText: `Question ${rounds - 1}` }).waitFor();
  expect(texts.join("").length).toBeGreaterThan(200_000);
  expect(await page.locator(".message").count()).toBeLessThan(20);

  const height = await scroller.evaluate((element) => element.scrollHeight);
  const frames = await measureFrames(page, () =>
    scroller.evaluate(async (element) => {
      for (let frame = 0; frame < 180; frame++) {
        element.scrollTop -= 160;
        await new Promise(requestAnimationFrame);
      }
    }),
  );
  report("scrolling", frames);
  expect(height).toBeGreaterThan(40_000);
  expect(await page.locator(".message").count()).toBeLessThan(20);
  // To the very beginning.
  await scroller.evaluate((element) => (element.scrollTop = 0));
  await page.locator(".bubble", { hasText: /^Question 0$/ }).waitFor();
  expect(open.watched.problems).toEqual([]);
});
