// What a person writes and chooses: nothing of it is lost, goes elsewhere or is sent twice.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { spoken } from "./support/answers.ts";
import { openPage } from "./support/browser.ts";
import { type Answer, FakeApi } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

interface Start {
  answer?: Answer;
  apiKey?: string;
  path?: string;
  prepare?(api: FakeApi): void;
}

async function start({ path = "", prepare, ...options }: Start = {}): Promise<Page> {
  const says: Answer = (message) => spoken(`You said ${message}.`);
  open.api = await new FakeApi({ answer: says, ...options }).listen();
  prepare?.(open.api);
  open.watched = await openPage(open.browser, open.api.url + path);
  const { page } = open.watched;
  await page.locator("#message, .key-page").waitFor();
  return page;
}

async function ask(page: Page, text: string): Promise<void> {
  const count = await page.locator(".message.assistant").count();
  await page.locator("#message").fill(text);
  await page.keyboard.press("Enter");
  await expect
    .poll(() => page.locator(".message.assistant[data-status=complete]").count())
    .toBeGreaterThan(count);
}

const written = (page: Page): Promise<string> => page.locator("#message").inputValue();

async function attach(page: Page, name: string, text: string): Promise<void> {
  const file = { name, mimeType: "text/plain", buffer: Buffer.from(text) };
  await page.locator("input[type=file]").setInputFiles(file);
  await page.locator(".composer .attachments li", { hasText: name }).waitFor();
}

function refusal(status: number, message: string) {
  return { status, json: { error: { code: "refused", message, type: "", param: null } } };
}

/** The next change that is sent there arrives only when the test says so. */
async function held(page: Page, url: string): Promise<{ isSent: Promise<void>; release(): void }> {
  let sent!: () => void;
  let release!: () => void;
  const isSent = new Promise<void>((resolve) => (sent = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  let isTaken = false;
  await page.route(url, async (route) => {
    if (!isTaken && route.request().method() !== "GET") {
      isTaken = true;
      sent();
      await released;
    }
    await route.continue();
  });
  return { isSent, release };
}

test("a draft stays with its conversation, and outlives the key form", async () => {
  const page = await start({ prepare: (api) => void api.addConversation("Other", ["a", "b"]) });
  await page.locator("#message").fill("Of the new one");
  await attach(page, "new.txt", "new");
  await page.getByRole("link", { name: "Other" }).click();
  await page.locator(".message.assistant").waitFor();
  expect(await written(page)).toBe("");
  expect(await page.locator(".composer .attachments").count()).toBe(0);
  await page.locator("#message").fill("Of the other");

  await page.route("**/api/tools", (route) => route.fulfill(refusal(401, "Who are you?")), {
    times: 1,
  });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.getByLabel("API key").fill("key");
  await page.keyboard.press("Enter");
  await page.locator("#message").waitFor();
  await expect.poll(() => written(page)).toBe("Of the other");

  await page.keyboard.press("Alt+KeyN");
  await page.locator(".empty-state").waitFor();
  expect(await written(page)).toBe("Of the new one");
  expect(await page.locator(".composer .attachments").innerText()).toContain("new.txt");
});

test("a refused message stays; of an accepted one only what was sent goes", async () => {
  const page = await start();
  await attach(page, "one.txt", "one");
  await page.locator("#message").fill("First");
  await page.route("**/runs", (route) => route.fulfill(refusal(429, "Too many.")), { times: 1 });
  await page.keyboard.press("Enter");
  await page.getByText("Too many.").waitFor();
  expect(await written(page)).toBe("First");
  expect(await page.locator(".composer .attachments li").count()).toBe(1);

  const run = await held(page, "**/runs");
  await page.locator("#message").press("Enter");
  await run.isSent;
  await page.locator("#message").pressSequentially(" and more");
  await attach(page, "two.txt", "two");
  run.release();
  await page.locator(".message.user", { hasText: "First" }).waitFor();
  await expect.poll(() => written(page)).toBe(" and more");
  expect(await page.locator(".composer .attachments li").allInnerTexts()).toEqual([
    expect.stringContaining("two.txt"),
  ]);
  expect(open.api!.asked).toMatchObject([
    { message: "First", files: [{ name: "one.txt", text: "one" }] },
  ]);
});

test("a message that is on its way is not sent a second time, and its refusal is told where it belongs", async () => {
  const prepare = (api: FakeApi): void => {
    api.addConversation("One", ["a", "b"]);
    api.addConversation("Two", ["a", "b"]);
  };
  const page = await start({ prepare, path: "/c/conv_1" });
  const run = await held(page, "**/runs");
  await page.locator("#message").fill("First");
  await page.keyboard.press("Enter");
  await run.isSent;
  const go = async (name: string): Promise<void> => {
    await page.getByRole("link", { name }).click();
    await page.getByRole("heading", { name }).waitFor();
    await page.locator("#message").waitFor();
  };
  await go("Two");
  await go("One");
  expect(await written(page)).toBe("First");
  await page.locator("#message").press("Enter");
  run.release();
  await page.locator(".message.user", { hasText: "First" }).waitFor();
  await expect.poll(() => written(page)).toBe("");
  expect(open.api!.asked).toHaveLength(1);

  await page.locator(".message.assistant[data-status=complete]").last().waitFor();
  await page.route("**/runs", (route) => route.fulfill(refusal(429, "Too many.")));
  await page.locator("#message").fill("Second");
  await page.keyboard.press("Enter");
  const error = page.locator(".composer-error");
  await error.waitFor();
  await go("Two");
  expect(await error.count()).toBe(0);
  await go("One");
  expect(await error.innerText()).toBe("Too many.");
});

test("a schema belongs to its conversation", async () => {
  const page = await start();
  const schema = page.getByTitle("Answer as JSON by a schema");
  await schema.click();
  await page.getByLabel("Name").fill("points");
  await page.getByRole("button", { name: "Use this schema" }).click();
  await ask(page, "First");
  const [conversation] = [...open.api!.conversations.values()];
  expect(conversation?.response_format).toMatchObject({ json_schema: { name: "points" } });
  await page.keyboard.press("Alt+KeyN");
  await page.locator(".empty-state").waitFor();
  expect(await schema.innerText()).toBe("JSON");
  await page.getByRole("link", { name: "First" }).click();
  await expect.poll(() => schema.innerText()).toBe("points");
  await page.reload();
  await expect.poll(() => schema.innerText()).toBe("points");
  await schema.click();
  await page.getByRole("button", { name: "Answer as text" }).click();
  await expect.poll(() => conversation?.response_format).toBe(null);
  expect(await schema.innerText()).toBe("JSON");
});

test("an edited message keeps its files, and is sent once", async () => {
  const page = await start();
  await attach(page, "one.txt", "one");
  await page.locator("#message").press("Enter");
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  await page.locator("#message").press("ArrowUp");
  const form = page.locator(".edit-form");
  expect(await form.locator(".attachments").innerText()).toContain("one.txt");
  const run = await held(page, "**/runs");
  await form.locator("textarea").press("Enter");
  await run.isSent;
  await form.locator("textarea").press("Enter");
  run.release();
  await form.waitFor({ state: "detached" });
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(await page.locator(".message.user .attachments").innerText()).toContain("one.txt");
  const [first] = [...open.api!.conversations.values()][0]!.messages;
  expect(open.api!.asked.slice(1)).toEqual([{ message: "", parent_id: null, files_of: first!.id }]);
});

test("a message goes behind the branch that is shown", async () => {
  const page = await start();
  await ask(page, "First");
  const [conversation] = [...open.api!.conversations.values()];
  const shown = conversation!.leaf_id;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("button", { name: "Previous branch" }).click();
  await expect.poll(() => conversation!.leaf_id).toBe(shown);
  // Elsewhere somebody looks at the other one, and this page has not heard of it.
  await page.route("**/runs", async (route) => {
    conversation!.leaf_id = conversation!.messages.at(-1)!.id;
    await route.continue();
  });
  await page.locator("#message").fill("Second");
  await page.keyboard.press("Enter");
  await expect.poll(() => open.api!.asked.at(-1)).toEqual({ message: "Second", parent_id: shown });
});

test("what is refused is said where it can be seen", async () => {
  const page = await start();
  await ask(page, "First");
  const notice = page.locator(".notice-line");
  const refused = async (url: string, act: () => Promise<unknown>): Promise<void> => {
    await page.route(url, (route) =>
      route.request().method() === "GET"
        ? route.continue()
        : route.fulfill(refusal(409, `No: ${url}`)),
    );
    await act();
    await notice.getByText(`No: ${url}`).waitFor();
    await notice.getByRole("button", { name: "Close this notice" }).click();
    await notice.waitFor({ state: "detached" });
    await page.unroute(url);
  };
  const again = page.getByRole("button", { name: "Try again" });
  const conversation = "**/api/conversations/conv_1";
  await refused("**/runs", () => again.click());
  await refused(conversation, () => page.getByLabel("Model or agent").selectOption("reader"));
  expect(await page.getByLabel("Model or agent").inputValue()).toBe("fake-model");
  await refused(conversation, async () => {
    await page.getByRole("button", { name: "Rename First" }).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("Second");
    await page.keyboard.press("Enter");
  });
  await again.click();
  await refused(conversation, () => page.getByRole("button", { name: "Previous branch" }).click());
});

test("quick choices of tools do not undo each other; one that is gone is told", async () => {
  const prepare = (api: FakeApi): void => {
    const id = api.addConversation("Tools", ["a", "b"]);
    Object.assign(api.conversations.get(id)!, { tools: ["gone", "read_text_file"] });
  };
  const page = await start({ prepare, path: "/c/conv_1" });
  await page.getByRole("button", { name: "Tools: 1 of 3" }).click();
  await page.getByText("no longer offered: gone").waitFor();
  const conversation = open.api!.conversations.get("conv_1")!;
  await page.getByRole("button", { name: "Forget" }).click();
  await expect.poll(() => conversation.tools).toEqual(["read_text_file"]);
  expect(await page.getByText("no longer offered").count()).toBe(0);

  const first = await held(page, "**/api/conversations/conv_1");
  await page.getByRole("checkbox", { name: "list_directory" }).check();
  await first.isSent;
  await page.getByRole("checkbox", { name: "read_text_file" }).uncheck();
  await page.getByRole("checkbox", { name: "search_files" }).check();
  first.release();
  await expect.poll(() => conversation.tools).toEqual(["list_directory", "search_files"]);
  expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(2);
});

test("older conversations stay when an answer ends, and can be read while searching", async () => {
  const prepare = (api: FakeApi): void => {
    for (let count = 1; count <= 250; count++) api.addConversation(`Number ${count}`, []);
  };
  const page = await start({ prepare });
  const rows = page.locator(".conversation-row");
  await expect.poll(() => rows.count()).toBe(100);
  const older = page.getByRole("button", { name: "Older conversations" });
  await older.click();
  await expect.poll(() => rows.count()).toBe(200);
  await ask(page, "Another");
  await page.getByRole("link", { name: "Another" }).waitFor();
  await expect.poll(() => page.locator(".conversation-row .spinner").count()).toBe(0);
  expect(await rows.count()).toBe(201);

  await page.locator("#search").fill("number 49");
  await expect.poll(() => rows.count()).toBe(2);
  await older.click();
  await page.getByRole("link", { name: "Number 49", exact: true }).waitFor();
  expect(await older.count()).toBe(0);

  // Behind so many new ones there would be a gap before those that were read earlier.
  await page.locator("#search").fill("");
  for (let count = 1; count <= 150; count++) open.api!.addConversation(`New ${count}`, []);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.getByRole("link", { name: "New 150" }).waitFor();
  expect(await rows.count()).toBe(100);
  await older.click();
  await page.getByRole("link", { name: "New 1", exact: true }).waitFor();
});

test("another tab follows when a branch is chosen", async () => {
  const page = await start();
  await ask(page, "First");
  await page.getByRole("button", { name: "Try again" }).click();
  const position = page.locator(".message.assistant .branch-switch");
  await position.getByText("2/2").waitFor();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  const second = await page.context().newPage();
  await second.goto(page.url());
  const there = second.locator(".message.assistant .branch-switch");
  await there.getByText("2/2").waitFor();
  await page.getByRole("button", { name: "Previous branch" }).click();
  await there.getByText("1/2").waitFor();
});

test("a copy works without a clipboard for pages, and says so when it does not", async () => {
  const page = await start({
    prepare: (api) => void api.addConversation("Copy", ["a", "**the answer**"]),
    path: "/c/conv_1",
  });
  await page.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.addEventListener("copy", () => {
      const { value } = document.activeElement as HTMLTextAreaElement;
      Object.assign(globalThis, { copied: value });
    });
  });
  const copy = page.getByRole("button", { name: "Copy answer" });
  await copy.click();
  const copied = (): Promise<unknown> =>
    page.evaluate(() => (globalThis as unknown as { copied: unknown }).copied);
  expect(await copied()).toBe("**the answer**");
  expect(await page.locator("textarea").count()).toBe(1);
  await page.evaluate(() => Object.assign(document, { execCommand: () => false }));
  await copy.click();
  await page.locator(".notice-line", { hasText: "did not let the page copy" }).waitFor();
});

test("a link with a key opens the conversation, whatever was refused before", async () => {
  const says: Answer = (message) => spoken(message);
  open.api = await new FakeApi({ answer: says, apiKey: "secret" }).listen();
  open.api.addConversation("Linked", ["a", "Here it is."]);
  open.watched = await openPage(open.browser, open.api.url);
  const { page } = open.watched;
  await page.getByLabel("API key").waitFor();
  // The first reading is sent without the key, and its refusal comes after the key was accepted.
  let read!: () => void;
  const isRead = new Promise<void>((resolve) => (read = resolve));
  let opened!: () => void;
  const isOpened = new Promise<void>((resolve) => (opened = resolve));
  await page.route("**/api/session", async (route) => {
    await isRead;
    await route.fulfill({ response: await route.fetch() });
    opened();
  });
  await page.route(
    "**/api/conversations/conv_1",
    async (route) => {
      const response = await route.fetch();
      read();
      await isOpened;
      await page.waitForResponse("**/api/tools");
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  const refused = page.waitForResponse((response) => response.status() === 401);
  await page.goto(`${open.api.url}/c/conv_1#key=secret`);
  await (await refused).finished();
  await page.getByText("Here it is.").waitFor();
  expect(await page.locator(".key-page").count()).toBe(0);
  await page.locator(".engine-strip .cells").waitFor();
});
