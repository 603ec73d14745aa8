// What the page shows of an answer while it comes. A fake of the API gives the next event when the test has
// seen the one before, so that nothing is shown too briefly to be seen.
import { expect, test } from "vitest";
import type { ConversationEvent, Detail } from "../../src/client/types.ts";
import { called, details, spoken, toolCall } from "./support/answers.ts";
import { openPage } from "./support/browser.ts";
import { event, FakeApi } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

/** Asks, and is answered with one event; `next` lets another one come. */
async function askPaced(events: () => AsyncIterable<ConversationEvent>) {
  let next = (): void => {};
  open.api = await new FakeApi({
    answer: async function* () {
      for await (const each of events()) {
        yield each;
        await new Promise<void>((resolve) => (next = resolve));
      }
    },
  }).listen();
  open.watched = await openPage(open.browser, open.api.url);
  const { page } = open.watched;
  await page.locator("#message").fill("Read it");
  await page.keyboard.press("Enter");
  return { page, next: () => next() };
}

test("a call's arguments appear as they are written, then its state, then its result", async () => {
  const call = {
    id: "call_1",
    name: "read_text_file",
    arguments: '{"path":"/srv/docs/notes.txt"}',
    result: "Bring the blue lantern.",
  };
  const { page, next } = await askPaced(() => called(call));
  const card = page.locator(".call-card");
  const state = () => card.getAttribute("data-state");
  await expect.poll(state).toBe("writing");
  for (let end = 8; end < call.arguments.length + 8; end += 8) {
    next();
    const text = () => card.locator(".arguments-text").innerText();
    await expect.poll(text).toBe(call.arguments.slice(0, end));
    expect(await state()).toBe("writing");
  }
  next();
  await expect.poll(() => card.locator(".arguments dd").innerText()).toBe("/srv/docs/notes.txt");
  next();
  await expect.poll(state).toBe("running");
  expect(await card.locator(".result").count()).toBe(0);
  next();
  await expect.poll(state).toBe("done");
  expect(await card.locator(".result").innerText()).toBe(call.result);
  expect(await page.locator(".message.assistant").getAttribute("data-status")).toBe("running");
  next();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(open.watched!.problems).toEqual([]);
});

test("a card that first appears with its question stays open when it is answered", async () => {
  const id = "call_1";
  const { page, next } = await askPaced(async function* () {
    yield event({ message: "I will send it." });
    yield event({
      details: [
        { type: "arguments", call_id: id, tool_name: "send", delta: '{"to":"Oskar"}' },
        {
          type: "approval",
          call_id: id,
          tool_name: "send",
          server: "harbour",
          arguments: '{"to":"Oskar"}',
          state: "asked",
        },
        { type: "state", call_id: id, state: "approval" },
      ],
    });
    yield toolCall(id, "send", "result", "Sent to the harbour.", { milliseconds: 7 });
  });
  await page.locator(".message.assistant .markdown").waitFor();
  next();
  await page.locator(".call-card .approval").waitFor();
  next();
  const card = page.locator(".call-card");
  await expect.poll(() => card.getAttribute("data-state")).toBe("done");
  expect(await card.locator(".result").innerText()).toBe("Sent to the harbour.");
  next();
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(open.watched!.problems).toEqual([]);
});

test("the same question a second time can be answered again", async () => {
  const id = "call_1";
  const question: Detail = {
    type: "approval",
    call_id: id,
    asking_id: "asking_1",
    tool_name: "ask",
    server: "harbour",
    arguments: "{}",
    state: "asked",
    question: { message: "Which?", schema: { type: "object", properties: {} } },
  };
  const state = (of: "approval" | "running"): Detail => ({ type: "state", call_id: id, state: of });
  const { page, next } = await askPaced(async function* () {
    yield details(question, state("approval"));
    // All in one frame.
    yield details(
      { ...question, state: "approved" },
      state("running"),
      { ...question, asking_id: "asking_2" },
      state("approval"),
    );
    yield toolCall(id, "ask", "result", "Done.", { server: "harbour" });
  });
  const send = page.locator("form.approval").getByRole("button", { name: "Send" });
  const decided = (): number => open.api!.decisions.length;
  await send.click();
  await expect.poll(decided).toBe(1);
  next();
  await send.click();
  await expect.poll(decided).toBe(2);
  expect(open.api!.decisions.map(({ askingId }) => askingId)).toEqual(["asking_1", "asking_2"]);
  next();
  await expect.poll(() => page.locator(".call-card").getAttribute("data-state")).toBe("done");
  expect(open.watched!.problems).toEqual([]);
});

test("text appears as it is written", async () => {
  const text = "The harbour opens at nine. Bring the blue lantern.";
  const { page, next } = await askPaced(() => spoken(text, 10));
  const shown = () => page.locator(".message.assistant .markdown").innerText();
  for (let end = 10; end < text.length + 10; end += 10) {
    await expect.poll(shown).toBe(text.slice(0, end).trimEnd());
    next();
  }
  await page.locator(".message.assistant[data-status=complete]").waitFor();
  expect(open.watched!.problems).toEqual([]);
});
