// A question of an MCP server on the page: a form by its schema, whose answer reaches the server.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mcpServerFromCommand } from "../../src/mcp/config.ts";
import { McpHost } from "../../src/mcp/host.ts";
import { readPageFiles } from "../../src/server/about/page.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { launchBrowser, openPage } from "./support/browser.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const viewport = { width: 1200, height: 800 };
let browser: Browser;
let server: ScriptedServer;

beforeAll(async () => {
  const asking = join(root, "test/fixtures/mcp/asking.mjs");
  const host = new McpHost([mcpServerFromCommand(process.execPath, [asking])], {
    log: { debug() {}, info() {}, warn() {} },
    version: "0.0.0-test",
    mustStart: true,
  });
  [browser, server] = await Promise.all([
    launchBrowser(),
    startScriptedServer({
      host,
      store: true,
      engine: { parallel: 2, threads: 1 },
      config: { page: readPageFiles(join(root, "ui/dist")) },
    }),
  ]);
  await server.script("Ask me.", [callText("ask_person", {}), "Done."]);
  await server.script("Ask for firms.", [callText("ask_firms", {}), "Done."]);
  await server.script("Send me.", [
    callText("send_person", { url: "https://example.com/login" }),
    "Sent.",
  ]);
});
afterAll(async () => {
  await browser.close();
  await server.close();
});

test("a form is refused until it fits, and then sent", async () => {
  const { page, problems } = await openPage(browser, server.url, { viewport });
  await page.locator("#message").fill("Ask me.");
  await page.keyboard.press("Enter");
  const form = page.locator("form.approval");
  await form.waitFor();
  expect(await form.innerText()).toContain("mcp asks: Which color?␛[2J");
  expect(await form.locator("option").allInnerTexts()).toEqual(["", "red", "blue"]);
  await form.getByLabel("color").selectOption("blue");
  await form.getByLabel("count").fill("10");
  await form.getByRole("button", { name: "Send" }).click();
  expect(await form.getByRole("alert").innerText()).toContain("/count must be <= 9");
  await form.getByLabel("count").fill("9");
  await form.getByRole("button", { name: "Send" }).click();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(await form.count()).toBe(0);
  expect(await page.locator(".call-card").innerText()).toContain(
    '{"action":"accept","content":{"color":"blue","count":9}}',
  );
  await page.context().close();
  // The browser itself logs the 400.
  expect(problems.filter((problem) => !problem.includes("400"))).toEqual([]);
});

test("several choices are sent as they are named, with their commas", async () => {
  const { page } = await openPage(browser, server.url, { viewport });
  await page.locator("#message").fill("Ask for firms.");
  await page.keyboard.press("Enter");
  const form = page.locator("form.approval");
  await form.waitFor();
  const firms = form.getByLabel("firms");
  expect(await firms.locator("option:checked").allInnerTexts()).toEqual(["Acme, Inc."]);
  await firms.selectOption(["Acme, Inc.", "Beta"]);
  await form.getByRole("button", { name: "Send" }).click();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(await page.locator(".call-card").innerText()).toContain(
    '{"action":"accept","content":{"firms":["Acme, Inc.","Beta"]}}',
  );
  await page.context().close();
});

test("an address is shown as a link, and may be declined", async () => {
  const { page } = await openPage(browser, server.url, { viewport });
  await page.locator("#message").fill("Send me.");
  await page.keyboard.press("Enter");
  const link = page.locator("form.approval a");
  await link.waitFor();
  expect(await link.getAttribute("href")).toBe("https://example.com/login");
  expect(await link.getAttribute("rel")).toContain("noopener");
  await page.locator("form.approval").getByRole("button", { name: "Decline" }).click();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  await expect.poll(() => page.locator(".call-card").innerText()).toContain('{"action":"decline"}');
  await page.context().close();
});
