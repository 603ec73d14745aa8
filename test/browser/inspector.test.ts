// The inspector: what it says of running and ended answers, that nothing moves when news come, and that axe finds nothing.
import axe from "axe-core";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Trace, TraceRows, TraceSequence } from "../../src/client/types.ts";
import { openPage } from "./support/browser.ts";
import { FakeApi } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

const rows: TraceRows = {
  prompt: 812,
  cached: 768,
  resumed: 60,
  prefilled: 104,
  recomputed: 0,
  generated: 92,
};

function traceOf(id: string, sequences: TraceSequence[], more: Partial<Trace> = {}): Trace {
  return {
    id,
    request_id: `req_${id}`,
    endpoint: "/v1/responses",
    model: "fake-model",
    created_at: 0,
    status: "running",
    duration_ms: 1000,
    rows,
    sequences,
    calls: [],
    dropped: 0,
    ...more,
  };
}

const held: TraceSequence = {
  agent: null,
  rows,
  end: null,
  spans: [
    { phase: "prepare", start_ms: 0, end_ms: 10 },
    { phase: "queued", start_ms: 10, end_ms: 20, waits_for: "place" },
    { phase: "prefill", start_ms: 20, end_ms: 120, rows: 44, reused: 768, source: "copy" },
    { phase: "decode", start_ms: 120, end_ms: 400 },
    { phase: "hold", start_ms: 400, end_ms: null, rows: 45 },
  ],
};
const weather = {
  id: "call_1",
  tool: "weather",
  server: "home",
  agent: null,
  start_ms: 401,
  end_ms: null,
  outcome: null,
  approval_ms: 0,
};
const waiting: TraceSequence = {
  agent: null,
  rows,
  end: null,
  spans: [{ phase: "queued", start_ms: 5, end_ms: null, waits_for: "prefix", behind: "resp_held" }],
};

async function inspect(traces: Trace[], phone = false): Promise<Page> {
  open.api = await new FakeApi({}).listen();
  open.api.traces = traces;
  const viewport = phone ? { width: 390, height: 844 } : { width: 1200, height: 800 };
  open.watched = await openPage(open.browser, open.api.url, { viewport });
  await open.watched.page.getByRole("button", { name: "Inspector" }).click();
  await open.watched.page.locator("dialog[open] .inspector").waitFor();
  return open.watched.page;
}

const state = (page: Page, index: number): Locator =>
  page.locator(".inspector-list tbody tr").nth(index).locator("td").first();

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe: runner } = globalThis as unknown as { axe: typeof axe };
    const { violations: found } = await runner.run(document, { resultTypes: ["violations"] });
    return found
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
  });
}

test("who waits for whom, the rows, and each phase of the chosen answer", async () => {
  const page = await inspect([
    traceOf("resp_waiting", [waiting]),
    traceOf("resp_held", [held], { calls: [weather] }),
  ]);
  await expect
    .poll(() => state(page, 0).innerText())
    .toBe("queued, waits for another sequence that is computing the same beginning");
  expect(await state(page, 1).innerText()).toBe("held, waits for weather");
  await page.locator(".inspector-list tbody button").nth(1).click();
  const trace = page.getByRole("region", { name: "Chosen answer" });
  await trace.getByText("resp_held").waitFor();
  expect(await trace.innerText()).toContain(
    "812 prompt tokens, 768 of them cached; 60 tokens of results; 104 rows computed, none twice; 92 tokens written.",
  );
  const cells = await trace
    .locator(".inspector-spans tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  expect(cells).toEqual([
    ["prepare", "<1 ms", "10 ms", ""],
    ["queued", "10 ms", "10 ms", "waits for a place: as many sequences run as may"],
    ["prefill", "20 ms", "100 ms", "44 rows; 768 positions copied from another slot"],
    ["decode", "120 ms", "280 ms", ""],
    ["hold", "400 ms", "600 ms", "45 tokens of results computed meanwhile"],
    ["tool weather", "401 ms", "599 ms", "home: runs"],
  ]);
  // The bars have their places in time.
  const bar = trace.locator(".track [data-phase=hold]");
  const [track, hold] = await Promise.all([
    trace.locator(".track").first().boundingBox(),
    bar.boundingBox(),
  ]);
  expect((hold!.x - track!.x) / track!.width).toBeCloseTo(0.4, 2);
  expect(hold!.width / track!.width).toBeCloseTo(0.6, 2);
});

test("nothing moves when answers come and go on, and what was chosen stays", async () => {
  const page = await inspect([traceOf("resp_held", [held], { calls: [weather] })]);
  const chosen = page.getByRole("region", { name: "Chosen answer" });
  await chosen.getByText("resp_held").waitFor();
  const boxes = (): Promise<unknown> =>
    Promise.all(
      ["dialog[open]", ".inspector-list", ".inspector-trace"].map((selector) =>
        page.locator(selector).boundingBox(),
      ),
    );
  const before = await boxes();
  const ended = { ...weather, end_ms: 900, outcome: "ok" };
  const many = Array.from({ length: 30 }, (_, index) =>
    traceOf(`resp_${index}`, [waiting], { status: "complete" }),
  );
  open.api!.traces = [...many, traceOf("resp_held", [held], { calls: [ended] })];
  await chosen.getByText("home: ok").waitFor();
  expect(await boxes()).toEqual(before);
  expect(await chosen.locator("code").innerText()).toBe("resp_held");
  expect(await page.locator(".inspector-list tbody tr").count()).toBe(31);
});

test("axe finds nothing serious, by keyboard and at phone width, in both colours", async () => {
  const page = await inspect([traceOf("resp_held", [held], { calls: [weather] })], true);
  await page.getByRole("region", { name: "Chosen answer" }).getByText("resp_held").waitFor();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violations(page)).toEqual([]);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.locator(".message-scroll, main").first().focus();
  await page.keyboard.press("Alt+KeyI");
  await page.locator("dialog[open] .inspector").waitFor();
});

test("a key that may not see it is told so", async () => {
  open.api = await new FakeApi({}).listen();
  open.watched = await openPage(open.browser, open.api.url);
  const { page } = open.watched;
  const error = { code: "scope_missing", message: "The API key lacks the scope." };
  await page.route("**/api/traces", (route) => route.fulfill({ status: 403, json: { error } }));
  await page.getByRole("button", { name: "Inspector" }).click();
  expect(await page.getByRole("alert").innerText()).toBe("The API key lacks the scope.");
});
