import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";
import { launchBrowser, type WatchedPage } from "./browser.ts";
import type { FakeApi } from "./fake-api.ts";

/** What a test has open; page and API are closed after each test. */
export interface OpenThings {
  browser: Browser;
  api?: FakeApi;
  watched?: WatchedPage;
}

/** One browser for the file's tests. */
export function closedAfterEach(): OpenThings {
  const open = {} as OpenThings;
  beforeAll(async () => {
    open.browser = await launchBrowser();
  });
  afterAll(() => open.browser.close());
  afterEach(async () => {
    await open.watched?.page.context().close();
    await open.api?.close();
  });
  return open;
}
