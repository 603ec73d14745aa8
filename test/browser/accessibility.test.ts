// axe on every state, light and dark, and every action without a mouse.
import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { called, delegated, details, markdownPage, spoken } from "./support/answers.ts";
import { openPage } from "./support/browser.ts";
import { FakeApi, fakeToolbox } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

/** What axe finds serious or critical, in both colour schemes. */
async function violations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe.source);
    const results = await page.evaluate(async () => {
      const { axe: runner } = globalThis as unknown as { axe: typeof axe };
      return (await runner.run(document, { resultTypes: ["violations"] })).violations;
    });
    for (const { id, impact, nodes } of results) {
      if (impact !== "serious" && impact !== "critical") continue;
      found.push(
        `${colorScheme} ${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
      );
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  return found;
}

const card = {
  id: "call_1",
  name: "read_text_file",
  arguments: '{"path":"notes.txt"}',
  result: "Nine.",
};

async function* everything(message: string) {
  yield details({ type: "phase", phase: "queued", at_ms: 0 });
  yield details({ type: "phase", phase: "prefill", at_ms: 3, tokens: 400 });
  yield details({ type: "reasoning", text: "They want to know." });
  yield details({ type: "phase", phase: "decode", at_ms: 90 });
  if (message.includes("approval")) {
    const { id: call_id, name: tool_name, arguments: text } = card;
    yield details({
      type: "approval",
      call_id,
      asking_id: "asking_1",
      tool_name,
      server: "files",
      arguments: text,
      state: "asked",
      may_have_run: true,
    });
    yield details({ type: "state", call_id, state: "approval" });
    await new Promise(() => {});
  }
  yield* called(card);
  yield* called({ ...card, id: "call_2", result: "No such file.", isError: true });
  yield details({ type: "phase", phase: "hold", at_ms: 300 });
  yield details({ type: "phase", phase: "tool", at_ms: 301, call_id: "call_1" });
  yield details({ type: "phase", phase: "resume", at_ms: 350, tokens: 30 });
  yield* delegated(["The first says **nine**.", "The second says ten."]);
  yield* spoken(markdownPage, 200);
  yield details({
    type: "end",
    status: "complete",
    usage: {
      prompt_tokens: 2361,
      completion_tokens: 120,
      cached_tokens: 2300,
      prefilled_tokens: 61,
    },
  });
}

async function start(options: ConstructorParameters<typeof FakeApi>[0] = {}, phone = false) {
  open.api = await new FakeApi({ answer: everything, ...options }).listen();
  const viewport = phone ? { width: 390, height: 844 } : { width: 1200, height: 800 };
  open.watched = await openPage(open.browser, open.api.url, { viewport });
  await open.watched.page.locator(".app, .key-page").waitFor();
  return open.watched.page;
}

async function ask(page: Page, text: string): Promise<void> {
  await page.locator("#message").fill(text);
  await page.keyboard.press("Enter");
}

test("axe finds nothing serious: no tools yet, and the page says how to get some", async () => {
  open.api = await new FakeApi({ toolbox: { ...fakeToolbox, servers: [], agents: [] } }).listen();
  open.watched = await openPage(open.browser, open.api.url);
  const empty = open.watched.page.locator(".empty-state");
  await empty.getByText("There are no tools yet.").waitFor();
  expect(await empty.innerText()).toContain("--mcp-config");
  expect(await violations(open.watched.page)).toEqual([]);
});

test("axe finds nothing serious: empty, answered, dialogs, approval, failure, key form", async () => {
  const page = await start();
  expect(await violations(page)).toEqual([]);

  await ask(page, "What does the folder say?");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  await page.locator("math").first().waitFor();
  await page.getByRole("button", { name: "Timeline" }).click();
  await page.getByRole("button", { name: "Reasoning" }).click();
  expect(await violations(page)).toEqual([]);

  for (const name of ["Keyboard help", "Tools: 3"]) {
    await page.getByRole("button", { name }).click();
    await page.locator("dialog[open]").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "detached" });
  }

  const refusal = { error: { code: "refused", message: "Not now.", type: "", param: null } };
  await page.route("**/runs", (route) => route.fulfill({ status: 409, json: refusal }), {
    times: 1,
  });
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".notice-line").waitFor();
  expect(await violations(page)).toEqual([]);

  await ask(page, "This needs approval");
  await page.locator(".approval").waitFor();
  expect(await violations(page)).toEqual([]);

  await open.api!.close();
  await page.locator(".offline").waitFor();
  expect(await violations(page)).toEqual([]);
});

test("axe finds nothing serious at phone width, with the side bar open", async () => {
  const page = await start({}, true);
  open.api!.addConversation("An earlier one", ["Hello", "Hello."]);
  await ask(page, "What does the folder say?");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(await violations(page)).toEqual([]);
  await page.locator(".sidebar-toggle").click();
  await page.getByRole("link", { name: "An earlier one" }).waitFor();
  expect(await violations(page)).toEqual([]);
  // Nothing sticks out.
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

test("the key form is asked for once, and lets in", async () => {
  const page = await start({ apiKey: "secret" });
  await page.getByLabel("API key").waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("API key").fill("secret");
  await page.keyboard.press("Enter");
  await page.locator("#message").waitFor();
  await ask(page, "Hello");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
});

/** What has the focus, as a person hears it. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement as HTMLElement;
    return element.getAttribute("aria-label") ?? element.innerText.trim();
  });
}

test("a conversation from the first word to its deletion, by keyboard alone", async () => {
  const page = await start();
  const { keyboard } = page;

  await keyboard.press("/");
  await expect.poll(() => focused(page)).toBe("Message");
  await keyboard.type("First line");
  await keyboard.press("Shift+Enter");
  await keyboard.type("second line");
  await keyboard.press("Enter");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(open.api!.asked[0]?.message).toBe("First line\nsecond line");

  // Editing makes a branch; back and forth between them.
  await keyboard.press("ArrowUp");
  await expect.poll(() => focused(page)).toBe("Edited message");
  await keyboard.press("Control+A");
  await keyboard.type("Another question");
  await keyboard.press("Enter");
  await page.locator(".bubble", { hasText: "Another question" }).waitFor();
  await page.getByRole("button", { name: "Previous branch" }).first().focus();
  await keyboard.press("Enter");
  await page.locator(".bubble", { hasText: "First line" }).waitFor();

  // Again, timeline, help, tools.
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  await page.locator(".message-scroll").focus();
  await keyboard.press("Alt+KeyL");
  await page.locator(".timeline").waitFor();
  await keyboard.press("Alt+KeyR");
  await expect.poll(() => page.locator(".message.assistant .branch-switch").count()).toBe(1);
  await page.locator(".message-scroll").focus();
  await keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await keyboard.press("Escape");
  await keyboard.press("Alt+KeyT");
  await page.getByRole("checkbox").first().focus();
  await keyboard.press("Space");
  await expect
    .poll(() => [...open.api!.conversations.values()][0]?.tools)
    .toEqual(["read_text_file", "search_files"]);
  await keyboard.press("Escape");

  // Approval and stop.
  await keyboard.press("Alt+KeyN");
  await page.locator(".empty-state").waitFor();
  await keyboard.press("/");
  await keyboard.type("Needs approval");
  await keyboard.press("Enter");
  await page.locator(".approval").waitFor();
  expect(await page.locator(".approval").innerText()).toContain("it may have taken effect");
  await keyboard.press("Alt+KeyA");
  await expect
    .poll(() => open.api!.decisions)
    .toEqual([{ callId: "call_1", decision: "approve", askingId: "asking_1" }]);

  // Rename, search, delete.
  await keyboard.press("Control+k");
  await expect.poll(() => focused(page)).toBe("Search conversations");
  await keyboard.type("first");
  await expect.poll(() => page.locator(".conversation-row").count()).toBe(1);
  await keyboard.press("Tab");
  await expect.poll(() => focused(page)).toBe("First line");
  await keyboard.press("Tab");
  await keyboard.press("Enter");
  await keyboard.type("Renamed: first");
  await keyboard.press("Enter");
  await page.getByRole("link", { name: "Renamed: first" }).waitFor();
  await page.getByRole("button", { name: "Delete Renamed: first" }).focus();
  await keyboard.press("Enter");
  await page.getByRole("button", { name: "Delete", exact: true }).focus();
  await keyboard.press("Enter");
  await expect.poll(() => page.locator(".conversation-row").count()).toBe(0);
  expect(open.watched!.problems).toEqual([]);
});

test("what has the focus can be seen, wherever it goes", async () => {
  const page = await start();
  await ask(page, "What does the folder say?");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  const unseen: string[] = [];
  const seen = new Set<string>();
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const { name, isVisible } = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      const style = getComputedStyle(element.id === "message" ? element.closest("form")! : element);
      const box = element.getBoundingClientRect();
      const isOutlined = style.outlineStyle !== "none" || element.id === "message";
      return {
        name: `${element.tagName} ${element.getAttribute("aria-label") ?? element.innerText}`,
        isVisible: element === document.body || (isOutlined && box.width > 0 && box.height > 0),
      };
    });
    seen.add(name);
    if (!isVisible) unseen.push(name);
  }
  expect(unseen).toEqual([]);
  expect([...seen].some((name) => name.startsWith("TEXTAREA Message"))).toBe(true);
  expect(seen.size).toBeGreaterThan(15);
});

test("a screen reader hears of calls and of the end", async () => {
  const page = await start();
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(globalThis, { heard });
    const region = document.querySelector("[aria-live=polite]")!;
    new MutationObserver(() => heard.push(region.textContent ?? "")).observe(region, {
      childList: true,
      subtree: true,
      characterData: true,
    });
  });
  await ask(page, "What does the folder say?");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  const heard = () =>
    page.evaluate(() => (globalThis as unknown as { heard: string[] }).heard.join(" "));
  await expect.poll(heard).toContain("Answer finished.");
  expect(await heard()).toMatch(/Message sent\.[^]*read_text_file failed\./);
});
