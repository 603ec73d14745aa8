/** /api/conversations: kept, listed, branched, continued. */

import { afterEach, describe, expect, test } from "vitest";
import { stateOfMessage } from "../../src/client/conversation-state.ts";
import { SseParser } from "../../src/client/sse-parser.ts";
import type { ConversationEvent, ConversationList } from "../../src/client/types.ts";
import {
  type ConversationsWorld,
  createConversationsWorld,
  says,
  scriptedTool,
} from "./conversations-world.ts";
import { callEvents, provider } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { eventually } from "../support/eventually.ts";
import { storeOfTests } from "../support/store-worlds.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

describe.each(["memory", storeOfTests] as const)("kept in %s", (kept) => {
  test("one that is deleted while a run begins in it", async () => {
    world = await createConversationsWorld({ kept });
    world.chat.script = [{ hang: true }];
    const { body } = await world.call("POST", "/api/conversations", {});
    const path = `/api/conversations/${body.id}`;
    const starting = world.call("POST", `${path}/runs`, { message: "Hi" });
    await eventually(() => expect(world.chat.requests).toHaveLength(1));
    expect((await world.call("DELETE", path)).status).toBe(204);
    expect((await starting).status).toBe(202);
    expect(world.chat.cancelledCount).toBe(1);
    expect((await world.call("GET", path)).status).toBe(404);
  });

  test("a conversation from its first message to its end", async () => {
    world = await createConversationsWorld({ kept });
    const settings = { instructions: "Be brief.", tools: [] };
    const created = await world.call("POST", "/api/conversations", settings);
    expect(created.status).toBe(201);
    const { id } = created.body;
    expect(created.body).toMatchObject({
      title: "",
      model: "tiny",
      run_id: null,
      tools: [],
      instructions: "Be brief.",
      response_format: null,
      leaf_id: null,
      messages: [],
    });
    const first = await world.answer(id, "Hello.", { message: "Hi there\nfriend" });
    const second = await world.answer(id, "Fine.", { message: "How are you?" });
    const { body } = await world.call("GET", `/api/conversations/${id}`);
    expect(body).toMatchObject({ title: "Hi there", leaf_id: second.message_id, run_id: null });
    expect(
      body.messages.map((it) => [it.id, it.parent_id, it.role, it.message, it.status]),
    ).toEqual([
      [first.user_message_id, null, "user", "Hi there\nfriend", "complete"],
      [first.message_id, first.user_message_id, "assistant", "Hello.", "complete"],
      [second.user_message_id, first.message_id, "user", "How are you?", "complete"],
      [second.message_id, second.user_message_id, "assistant", "Fine.", "complete"],
    ]);
    expect(body.messages[1]).toMatchObject({
      run_id: first.run_id,
      error: null,
      usage: {
        prompt_tokens: 25,
        completion_tokens: 7,
        cached_tokens: 12,
        prefilled_tokens: 13,
      },
    });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi there\nfriend" },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "How are you?" },
    ]);
  });

  test("a list in pages, the last changed first; renaming and deleting", async () => {
    world = await createConversationsWorld({ kept });
    const ids: string[] = [];
    for (const title of ["a", "b", "c"])
      ids.push((await world.call("POST", "/api/conversations", { title })).body.id);
    const [a, b, c] = ids as [string, string, string];
    const page = async (query: string) => {
      const { body } = await world.call<ConversationList>("GET", `/api/conversations${query}`);
      return [body.conversations?.map(({ id }) => id), body.has_more];
    };
    expect(await page("")).toEqual([[c, b, a], false]);
    expect(await page("?limit=2")).toEqual([[c, b], true]);
    expect(await page(`?limit=2&before=${b}`)).toEqual([[a], false]);
    await new Promise((resolve) => setTimeout(resolve, 2));
    const renamed = await world.call("PATCH", `/api/conversations/${a}`, { title: "A" });
    expect(renamed.body.title).toBe("A");
    expect(await page("")).toEqual([[a, c, b], false]);
    expect((await world.call("DELETE", `/api/conversations/${c}`)).status).toBe(204);
    expect((await world.call("GET", `/api/conversations/${c}`)).status).toBe(404);
    expect(await page("")).toEqual([[a, b], false]);
  });

  test("branches: an edited message, an answer anew, the branch that is shown", async () => {
    world = await createConversationsWorld({ kept });
    const { id } = (await world.call("POST", "/api/conversations", {})).body;
    const first = await world.answer(id, "One.", { message: "1" });
    const second = await world.answer(id, "Two.", { message: "2" });
    const edited = await world.answer(id, "Two, again.", {
      message: "2b",
      parent_id: first.message_id,
    });
    expect(world.chat.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
      "1",
      "One.",
      "2b",
    ]);
    const anew = await world.answer(id, "Zwei.", { retry: second.message_id });
    expect(anew.user_message_id).toBe(second.user_message_id);
    expect(world.chat.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
      "1",
      "One.",
      "2",
    ]);
    const start = await world.answer(id, "Other.", { message: "0", parent_id: null });
    const { body } = await world.call("GET", `/api/conversations/${id}`);
    const parents = Object.fromEntries(body.messages.map((it) => [it.message, it.parent_id]));
    expect(parents).toEqual({
      "1": null,
      "One.": first.user_message_id,
      "2": first.message_id,
      "Two.": second.user_message_id,
      "2b": first.message_id,
      "Two, again.": edited.user_message_id,
      "Zwei.": second.user_message_id,
      "0": null,
      "Other.": start.user_message_id,
    });
    expect(body.leaf_id).toBe(start.message_id);
    const leaf = { leaf_id: second.message_id };
    await world.call("PATCH", `/api/conversations/${id}`, leaf);
    await world.answer(id, "Three.", { message: "3" });
    expect(world.chat.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
      "1",
      "One.",
      "2",
      "Two.",
      "3",
    ]);
  });

  test("a tool's round is part of the next prompt, and of the stored message", async () => {
    const tools = provider(scriptedTool("read_file", async ({ path }) => `content of ${path}`));
    world = await createConversationsWorld({ kept, tools });
    const call = { id: "c1", name: "read_file", arguments: '{"path":"a"}' };
    const started = await world.begin("Read a.", [
      { type: "reasoning", text: "Hm." },
      { type: "content", text: "Reading." },
      ...callEvents(call),
      { type: "hold", calls: [call], usage },
      ...says("It says so."),
    ]);
    const { events } = await world.read(started.stream_url);
    expect(events.map(({ event }) => event.message).join("")).toBe("Reading.\n\nIt says so.");
    const { body } = await world.call("GET", `/api/conversations/${started.id}`);
    expect(body.messages[1]).toMatchObject({
      message: "Reading.\n\nIt says so.",
      reasoning: "Hm.",
      tool_calls: [
        {
          call_id: "c1",
          event_type: "result",
          tool_name: "read_file",
          tool_response: "content of a",
          tool_call_details: { arguments: '{"path":"a"}', server: "files" },
          is_complete: true,
        },
      ],
      status: "complete",
    });
    expect(body.messages[1]!.timeline.map(({ phase }) => phase)).toEqual([
      "queued",
      "decode",
      "hold",
      "tool",
      "resume",
      "decode",
    ]);
    await world.answer(started.id, "Yes.", { message: "Sure?" });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "user", content: "Read a." },
      { role: "assistant", content: "Reading.", reasoning: "Hm.", toolCalls: [call] },
      { role: "tool", toolCallId: "c1", name: "read_file", content: "content of a" },
      { role: "assistant", content: "It says so." },
      { role: "user", content: "Sure?" },
    ]);
  });

  test("cancelling keeps what was said; the next message goes on from there", async () => {
    world = await createConversationsWorld({ kept });
    const started = await world.begin("Tell me.", [
      { type: "content", text: "Once" },
      { hang: true },
    ]);
    const { id, run_id: runId } = started;
    const during = await world.call("GET", `/api/conversations/${id}`);
    expect(during.body.run_id).toBe(runId);
    expect(during.body.messages[1]).toMatchObject({ message: "Once", status: "running" });
    const again = await world.call("POST", `/api/conversations/${id}/runs`, { message: "And?" });
    expect(again.status).toBe(409);
    expect(again.body.error).toMatchObject({ code: "run_in_progress", param: "parent_id" });
    const cancelled = await world.call("POST", `/api/conversations/${id}/runs/${runId}/cancel`);
    expect(cancelled.status).toBe(202);
    const { events } = await world.read(`${started.stream_url}&details=1`);
    expect(events.at(-1)!.event.details).toEqual([{ type: "end", status: "cancelled" }]);
    const after = await world.call("GET", `/api/conversations/${id}`);
    expect(after.body).toMatchObject({ run_id: null });
    expect(after.body.messages[1]).toMatchObject({ message: "Once", status: "cancelled" });
    await world.answer(id, "Well.", { message: "Go on." });
    expect(world.chat.requests.at(-1)!.messages[1]).toEqual({ role: "assistant", content: "Once" });
  });

  test("deleting a conversation ends what runs in it", async () => {
    world = await createConversationsWorld({ kept });
    const started = await world.begin("Tell me.", [
      { type: "content", text: "Once" },
      { hang: true },
    ]);
    const viewer = await fetch(world.url + started.stream_url);
    expect((await world.call("DELETE", `/api/conversations/${started.id}`)).status).toBe(204);
    const seen = new SseParser().push(await viewer.text());
    expect(seen.map(({ data }) => (JSON.parse(data) as ConversationEvent).message)).toEqual([
      "Once",
    ]);
    expect((await world.read(started.stream_url)).status).toBe(404);
    expect(world.chat.cancelledCount).toBeGreaterThan(0);
  });

  test("a run that fails is told as failed", async () => {
    world = await createConversationsWorld({ kept });
    const started = await world.begin("Hi", [
      { type: "content", text: "Half" },
      { fail: new TypeError("secret") },
    ]);
    const { events } = await world.read(`${started.stream_url}&details=1`);
    const end = events.at(-1)!.event.details!.at(-1);
    expect(end).toMatchObject({ type: "end", status: "failed", error: { code: "internal_error" } });
    expect(JSON.stringify(end)).not.toContain("secret");
    const { body } = await world.call("GET", `/api/conversations/${started.id}`);
    expect(body.messages[1]).toMatchObject({
      message: "Half",
      status: "failed",
      error: { code: "internal_error" },
    });
  });
});

test.each(["approve", "deny"] as const)("a person is asked, and may %s", async (decision) => {
  const tool = scriptedTool("write_file", async () => "written");
  world = await createConversationsWorld({ tools: provider({ ...tool, approval: "always" }) });
  const call = { id: "c1", name: "write_file", arguments: '{"path":"a"}' };
  const started = await world.begin("Write a.", [
    ...callEvents(call),
    { type: "hold", calls: [call], usage },
    ...says("Well."),
  ]);
  const reading = world.read(`${started.stream_url}&details=1`);
  const asked = await eventually(async () => {
    const { body } = await world.call<{ approvals: { call_id: string }[] }>(
      "GET",
      "/api/approvals",
    );
    expect(body.approvals).toHaveLength(1);
    return body.approvals[0]!;
  });
  const running = await world.call("GET", `/api/conversations/${started.id}`);
  expect(running.body.messages[1]!.tool_calls).toMatchObject([{ event_type: "call" }]);
  await world.call("POST", `/api/approvals/${asked.call_id}`, { decision });
  const { events } = await reading;
  const details = events.flatMap(({ event }) => event.details ?? []);
  const isApproved = decision === "approve";
  expect(details.filter(({ type }) => type === "approval")).toMatchObject([
    { call_id: asked.call_id, tool_name: "write_file", server: "files", state: "asked" },
    { call_id: asked.call_id, state: isApproved ? "approved" : "denied" },
  ]);
  const { body } = await world.call("GET", `/api/conversations/${started.id}`);
  const [told] = body.messages[1]!.tool_calls;
  expect(told).toMatchObject({ event_type: "result", is_complete: true });
  expect(told!.tool_call_details.approval).toBe(isApproved ? "approved" : "denied");
  expect(told!.tool_response === "written").toBe(isApproved);
  expect(stateOfMessage(body.messages[1]!).toolCalls[0]!.progress).toBe(
    isApproved ? "done" : "denied",
  );
});

test("a conversation is its owner's", async () => {
  world = await createConversationsWorld({ config: { apiKeys: ["k1", "k2"] } });
  const k1 = { authorization: "Bearer k1" };
  const k2 = { authorization: "Bearer k2" };
  const { id } = (await world.call("POST", "/api/conversations", {}, k1)).body;
  expect((await world.call("GET", `/api/conversations/${id}`, undefined, k1)).status).toBe(200);
  expect((await world.call("GET", `/api/conversations/${id}`, undefined, k2)).status).toBe(404);
  expect((await world.call("DELETE", `/api/conversations/${id}`, undefined, k2)).status).toBe(404);
  const message = { message: "Hi" };
  const run = await world.call("POST", `/api/conversations/${id}/runs`, message, k2);
  expect(run.status).toBe(404);
  const { body } = await world.call<ConversationList>("GET", "/api/conversations", undefined, k2);
  expect(body.conversations).toEqual([]);
});

test("files, a format, tools and limits reach the model", async () => {
  world = await createConversationsWorld({
    tools: provider(
      scriptedTool("read_file", async () => "x"),
      scriptedTool("write_file", async () => "x"),
    ),
  });
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  const format = { type: "json_schema", json_schema: { name: "x", schema } };
  const { id } = (await world.call("POST", "/api/conversations", { response_format: format })).body;
  await world.answer(id, "{}", {
    message: "Compare.",
    files: [{ name: "a.txt", text: "alpha" }],
    tools: ["write_file"],
    max_tokens: 9,
    seed: 5,
    reasoning_effort: "low",
  });
  expect(world.chat.requests.at(-1)).toMatchObject({
    messages: [{ role: "user", content: 'File "a.txt":\nalpha\n\nCompare.' }],
    tools: [{ name: "write_file" }],
    maxTokens: 9,
    sampling: { seed: 5 },
    guidance: { document: { kind: "json_schema" } },
    templateVariables: { reasoning_effort: "low" },
  });
  const { body } = await world.call("GET", `/api/conversations/${id}`);
  expect(body.messages[0]).toMatchObject({
    message: "Compare.",
    files: [{ name: "a.txt", characters: 5 }],
  });
});

test("an edited message keeps the files of the one before", async () => {
  world = await createConversationsWorld();
  const { id } = (await world.call("POST", "/api/conversations", {})).body;
  const files = [
    { name: "a.txt", text: "alpha" },
    { name: "b.txt", text: "beta" },
  ];
  const first = await world.answer(id, "One.", { message: "Compare.", files });
  const edit = { parent_id: null, files_of: first.user_message_id };
  await world.answer(id, "Two.", { ...edit, message: "Sum up." });
  const content = 'File "a.txt":\nalpha\n\nFile "b.txt":\nbeta';
  expect(world.chat.requests.at(-1)!.messages).toEqual([
    { role: "user", content: `${content}\n\nSum up.` },
  ]);
  const { body } = await world.call("GET", `/api/conversations/${id}`);
  expect(body.messages[2]).toMatchObject({
    message: "Sum up.",
    files: [
      { name: "a.txt", characters: 5 },
      { name: "b.txt", characters: 4 },
    ],
  });
  // They are enough without a text.
  await world.answer(id, "Three.", edit);
  expect(world.chat.requests.at(-1)!.messages).toEqual([{ role: "user", content }]);
});
