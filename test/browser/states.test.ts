// Each state of the page against the real server, the model that ships and real tools. With
// FERMATA_SCREENSHOTS=1 every state is written to docs/screenshots, light and dark.
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Conversation } from "../../src/client/types.ts";
import { launchBrowser, openPage, takeScreenshots, type WatchedPage } from "./support/browser.ts";
import { demoFolder as folder } from "../support/demo-folder.ts";
import {
  questions,
  type ServedPage,
  servePage,
  servePageByCommand,
} from "./support/served-page.ts";

let browser: Browser;
let served: ServedPage;
const open: WatchedPage[] = [];

beforeAll(async () => {
  [browser, served] = await Promise.all([launchBrowser(), servePage()]);
});
afterAll(async () => {
  await browser.close();
  await served.close();
});
afterEach(async () => {
  for (const { page, problems } of open.splice(0)) {
    await page.context().close();
    expect(problems).toEqual([]);
  }
});

async function visit({ url = served.url, phone = false } = {}): Promise<Page> {
  const viewport = phone ? { width: 390, height: 844 } : { width: 1200, height: 800 };
  const watched = await openPage(browser, url, { viewport });
  open.push(watched);
  await watched.page.locator("#message").waitFor();
  return watched.page;
}

async function ask(page: Page, text: string): Promise<void> {
  await page.locator("#message").fill(text);
  await page.keyboard.press("Enter");
}

const lastAnswer = (page: Page): Locator => page.locator(".message.assistant").last();

async function answered(page: Page, status = "complete"): Promise<string> {
  await page.locator(`.message.assistant[data-status=${status}]`).last().waitFor();
  return lastAnswer(page).innerText();
}

const weatherAnswer = "It is 21 degrees and sunny in Paris.";

async function askForApproval(page: Page): Promise<void> {
  await ask(page, questions.weather);
  await page.locator(".approval").waitFor();
}

test("the first message", async () => {
  const page = await visit();
  await page.locator(".empty-state").waitFor();
  await page.locator(".engine-strip .cells").waitFor();
  await takeScreenshots(page, "empty");
  await ask(page, "My name is Oskar.");
  expect(await answered(page)).toContain("Nice to meet you, Oskar!");
  await ask(page, "Do you remember my name?");
  await expect.poll(() => page.locator(".message.assistant[data-status=complete]").count()).toBe(2);
  expect(await lastAnswer(page).innerText()).toContain("Your name is Oskar.");
  const inMemory = /^KV cells: .*; in memory: \d+ sequences?, \d+ of [1-9][\d,]* MiB$/;
  const cells = page.locator(".engine-strip .cells");
  await expect.poll(() => cells.getAttribute("aria-label")).toMatch(inMemory);
  // The second question was read with the first from the cache.
  expect(await lastAnswer(page).locator(".usage").innerText()).toMatch(/ [1-9][\d,]* cached/);
  expect(new URL(page.url()).pathname).toMatch(/^\/c\//);
  await page.getByRole("link", { name: "My name is Oskar." }).waitFor();
  await takeScreenshots(page, "first-message");
});

test("tool cards whose arguments are written by the model, and the time it took", async () => {
  const page = await visit();
  await page.evaluate(() => {
    const seen = new Set<string>();
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      for (const element of document.querySelectorAll(".arguments-text"))
        seen.add(element.textContent ?? "");
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await ask(page, questions.files);
  const text = await answered(page);
  expect(text).toContain("I'll list the files.");
  expect(text).toContain("The harbour opens at nine.");

  // How much of a call is written between two frames is the machine's affair (paced.test.ts shows each part);
  // what was seen was the beginning of what was called.
  const id = new URL(page.url()).pathname.replace("/c/", "");
  const reply = await page.request.get(new URL(`/api/conversations/${id}`, page.url()).href);
  const { messages } = (await reply.json()) as Conversation;
  const whole = messages.at(-1)!.tool_calls.map((call) => call.tool_call_details.arguments ?? "");
  expect(whole.map((json) => JSON.parse(json) as unknown)).toEqual([
    { path: folder },
    { path: `${folder}/notes.txt` },
  ]);
  const seen = await page.evaluate(() => [...(globalThis as unknown as { seen: string[] }).seen]);
  for (const part of seen) expect(whole.some((json) => json.startsWith(part))).toBe(true);

  const cards = page.locator(".call-card");
  expect(
    await cards.evaluateAll((all) => all.map((card) => (card as HTMLElement).dataset["state"])),
  ).toEqual(["done", "done"]);
  // A card that was first drawn when its call was done is closed (paced.test.ts: one that was watched stays open).
  const head = cards.last().locator(".call-head");
  if ((await head.getAttribute("aria-expanded")) === "false") await head.click();
  expect(await cards.last().locator(".arguments dd").innerText()).toBe(`${folder}/notes.txt`);
  expect(await cards.last().locator(".result").innerText()).toContain("Bring the blue lantern.");
  expect(await cards.last().locator(".call-time").innerText()).toMatch(/ms|s$/);

  await page.getByRole("button", { name: "Timeline" }).click();
  const phases = await page
    .locator(".timeline [data-phase]")
    .evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset["phase"]));
  for (const phase of ["prefill", "decode", "hold", "tool", "resume"])
    expect(phases).toContain(phase);
  await takeScreenshots(page, "tool-card");

  // A reload shows the same, in the same order.
  await page.reload();
  await page.locator(".call-card").last().waitFor();
  expect(await lastAnswer(page).locator(".call-card").count()).toBe(2);
  const order = await lastAnswer(page).evaluate((element) =>
    [...element.querySelectorAll(".call-card, .markdown")].map(({ className }) => className),
  );
  expect(order.at(-1)).toContain("markdown");
});

test("two sub-agents work side by side, each in its card", async () => {
  const page = await visit();
  await page.getByLabel("Model or agent").selectOption("supervisor");
  await ask(page, questions.delegation);
  expect(await answered(page)).toContain("Both say that the harbour opens at nine.");
  const cards = page.locator(".call-group[data-side-by-side=true] > .call-card");
  expect(await cards.locator("> .call-head .call-name").allInnerTexts()).toEqual([
    "reader",
    "checker",
  ]);
  for (const index of [0, 1]) {
    const inner = cards.nth(index).locator(".agent-turn");
    expect(await inner.locator(".call-name").innerText()).toBe("filesystem_read_text_file");
    expect(await inner.innerText()).toContain("Bring the blue lantern.");
  }
  await takeScreenshots(page, "delegation");
});

test("an approval holds the answer until it is given, in either of two tabs", async () => {
  const page = await visit();
  await askForApproval(page);
  expect(await lastAnswer(page).locator(".run-status").innerText()).toBe("Held until you decide");
  await page.locator('.engine-strip [data-hold="true"][data-active="true"]').waitFor();
  await takeScreenshots(page, "approval");

  const second = await page.context().newPage();
  await second.goto(page.url());
  await second.locator(".approval").waitFor();
  await second.getByRole("button", { name: "Approve" }).click();
  for (const tab of [page, second]) {
    expect(await answered(tab)).toContain(weatherAnswer);
    expect(await tab.locator(".approval").count()).toBe(0);
  }
  // What is asked in one tab appears in the other.
  await ask(second, "My name is Oskar.");
  await page.locator(".bubble", { hasText: "My name is Oskar." }).waitFor();
  await expect.poll(() => lastAnswer(page).innerText()).toContain("Nice to meet you, Oskar!");
  await takeScreenshots(page, "two-tabs");
});

test("a decision that a proxy could not pass on is sent again", async () => {
  const page = await visit();
  await askForApproval(page);
  await page.route("**/api/approvals/*", (route) => route.fulfill({ status: 502, body: "" }), {
    times: 1,
  });
  await page.locator(".approval").getByRole("button", { name: "Approve" }).click();
  expect(await answered(page)).toContain(weatherAnswer);
});

test("a reading that comes late does not undo the end of an answer", async () => {
  const page = await visit();
  await askForApproval(page);
  const id = new URL(page.url()).pathname.replace("/c/", "");
  let release!: () => void;
  const ended = new Promise<void>((resolve) => (release = resolve));
  let read!: () => void;
  const isRead = new Promise<void>((resolve) => (read = resolve));
  await page.route(
    `**/api/conversations/${id}`,
    async (route) => {
      const response = await route.fetch();
      read();
      await ended;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  // Another tab tells of a change, and this one reads while the answer still runs.
  const tell = (): Promise<void> =>
    page.evaluate((changed) => {
      const tab = new BroadcastChannel("fermata");
      tab.postMessage({ changed });
      tab.close();
    }, id);
  await tell();
  await isRead;
  await page.locator(".approval").getByRole("button", { name: "Approve" }).click();
  expect(await answered(page)).toContain(weatherAnswer);
  const followed: string[] = [];
  page.on("request", (request) => followed.push(new URL(request.url()).pathname));
  for (const go of [release, tell]) {
    const answer = page.waitForResponse(`**/api/conversations/${id}`);
    await go();
    await (await answer).finished();
  }
  await page.evaluate(() => new Promise((frame) => requestAnimationFrame(frame)));
  // The run is not followed a second time.
  expect(followed.filter((path) => path.endsWith("/stream"))).toEqual([]);
  expect(await lastAnswer(page).innerText()).toContain(weatherAnswer);
});

test("a reload in the middle finds the answer where it was", async () => {
  const page = await visit();
  await askForApproval(page);
  await page.reload();
  await page.locator(".approval").waitFor();
  expect(await page.locator(".arguments dd").innerText()).toBe("Paris");
  await takeScreenshots(page, "reload");
  await page.getByRole("button", { name: "Deny" }).click();
  await answered(page);
  expect(await page.locator(".call-card").first().getAttribute("data-state")).toBe("denied");
});

test("stop, and try again", async () => {
  const page = await visit();
  await askForApproval(page);
  await page.getByRole("button", { name: "Stop" }).click();
  expect(await answered(page, "cancelled")).toContain("Stopped.");
  expect(await page.locator(".call-card").getAttribute("data-state")).toMatch(/stopped|denied/);
  await takeScreenshots(page, "stopped");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".approval").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  expect(await answered(page)).toContain(weatherAnswer);
  expect(await lastAnswer(page).locator(".branch-switch").innerText()).toBe("2/2");
});

test("an edited message is a branch; its prefix is read from the cache", async () => {
  const page = await visit();
  await ask(page, "My name is Oskar.");
  await answered(page);
  await page.locator(".message.user").hover();
  await page.getByRole("button", { name: "Edit message" }).click();
  await page.getByLabel("Edited message").fill("My name is Kuvi.");
  await page.getByRole("button", { name: "Send as a branch" }).click();
  await expect.poll(() => lastAnswer(page).innerText()).toContain("Nice to meet you, Kuvi!");
  expect(await lastAnswer(page).locator(".usage").innerText()).toMatch(/ [1-9][\d,]* cached/);
  const branches = page.locator(".message.user .branch-switch");
  expect(await branches.innerText()).toBe("2/2");
  await takeScreenshots(page, "branch");
  await page.getByRole("button", { name: "Previous branch" }).click();
  await expect.poll(() => lastAnswer(page).innerText()).toContain("Nice to meet you, Oskar!");
  // The branch that is shown is kept.
  await page.reload();
  await expect.poll(() => lastAnswer(page).innerText()).toContain("Nice to meet you, Oskar!");
});

test("the engine dies while a call waits; its approval outlives it", async () => {
  const command = await servePageByCommand();
  try {
    const page = await visit({ url: command.url });
    await ask(page, questions.files);
    await page.locator(".approval").waitFor();
    await command.killEngine();
    await takeScreenshots(page, "restart");
    const ready = async () => (await fetch(`${command.url}/ready`)).status;
    await expect.poll(ready, { timeout: 30_000 }).toBe(200);
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    expect(await answered(page)).toContain("Bring the blue lantern.");
  } finally {
    await command.close();
  }
});

test("an answer by a schema, and a file that was dropped", async () => {
  const page = await visit();
  await page.getByTitle("Answer as JSON by a schema").click();
  await page.getByRole("button", { name: "Use this schema" }).click();
  await ask(page, questions.joke);
  await answered(page);
  const code = await lastAnswer(page).locator(".code-block pre").innerText();
  expect(Object.keys(JSON.parse(code) as object)).toEqual(["title", "points"]);

  await page.keyboard.press("Alt+KeyN");
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["The gate is green."], "gate.txt", { type: "text/plain" }));
    return transfer;
  });
  await page.dispatchEvent(".conversation", "dragenter", { dataTransfer: data });
  await page.locator(".drop-hint").waitFor();
  await page.dispatchEvent(".conversation", "drop", { dataTransfer: data });
  await page.locator(".attachments li", { hasText: "gate.txt" }).waitFor();
  await takeScreenshots(page, "file");
  await ask(page, "What does the file say?");
  await page.locator(".message.user .attachments li", { hasText: "gate.txt" }).waitFor();
});

test("the servers and their tools, and a choice among them", async () => {
  const page = await visit();
  await page.getByRole("button", { name: /^Tools: 4/ }).click();
  const files = page.getByRole("region", { name: "Server filesystem" });
  await files.waitFor();
  await takeScreenshots(page, "tools");
  await files.getByRole("button", { name: "None" }).click();
  await page.getByRole("button", { name: "Tools: 1 of 4", includeHidden: true }).waitFor();
  await page.keyboard.press("Escape");
  await ask(page, questions.weather);
  await page.locator(".approval").waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  expect(await answered(page)).toContain(weatherAnswer);
});

test("on a phone", async () => {
  const page = await visit({ phone: true });
  await ask(page, questions.files);
  expect(await answered(page)).toContain("Bring the blue lantern.");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await takeScreenshots(page, "phone");
  await page.locator(".sidebar-toggle").click();
  await page.getByRole("link", { name: "My name is Oskar." }).first().waitFor();
  await takeScreenshots(page, "phone-conversations");
  await page.getByRole("link", { name: "My name is Oskar." }).first().click();
  await expect.poll(() => page.locator(".message").count()).toBeGreaterThan(1);
});
