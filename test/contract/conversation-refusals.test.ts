/** What a conversation refuses, with the field at fault and the status. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import {
  type ConversationsWorld,
  createConversationsWorld,
  scriptedTool,
} from "./conversations-world.ts";
import { provider } from "./fake-services.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

describe("what is asked wrongly", () => {
  test("names the field", async () => {
    world = await createConversationsWorld({
      tools: provider(scriptedTool("read_file", async () => "x")),
    });
    const { id } = (await world.call("POST", "/api/conversations", {})).body;
    const first = await world.answer(id, "One.", { message: "1" });
    const runs = `/api/conversations/${id}/runs`;
    const question = { leaf_id: first.user_message_id };
    const wrong: [string, "POST" | "PATCH" | "GET", string, object | undefined, number, string][] =
      [
        ["no text", "POST", runs, {}, 400, "message"],
        ["blank text", "POST", runs, { message: " " }, 400, "message"],
        ["text's type", "POST", runs, { message: 1 }, 400, "message"],
        ["both", "POST", runs, { message: "a", retry: first.message_id }, 400, "message"],
        ["stray parent", "POST", runs, { message: "a", parent_id: "x" }, 400, "parent_id"],
        [
          "a question as parent",
          "POST",
          runs,
          { message: "a", parent_id: first.user_message_id },
          400,
          "parent_id",
        ],
        ["stray retry", "POST", runs, { retry: "x" }, 400, "retry"],
        ["tool", "POST", runs, { message: "a", tools: ["read_fil"] }, 400, "tools[0]"],
        ["file", "POST", runs, { message: "a", files: [{ name: "x" }] }, 400, "files[0].text"],
        [
          "files twice",
          "POST",
          runs,
          {
            message: "a",
            files: [{ name: "x", text: "y" }],
            files_of: first.user_message_id,
          },
          400,
          "files_of",
        ],
        ["stray files", "POST", runs, { message: "a", files_of: "x" }, 400, "files_of"],
        [
          "an answer's files",
          "POST",
          runs,
          { message: "a", files_of: first.message_id },
          400,
          "files_of",
        ],
        ["no files", "POST", runs, { files_of: first.user_message_id }, 400, "message"],
        [
          "files anew",
          "POST",
          runs,
          { retry: first.message_id, files_of: first.user_message_id },
          400,
          "files_of",
        ],
        [
          "format",
          "POST",
          runs,
          { message: "a", response_format: {} },
          400,
          "response_format.type",
        ],
        ["temperature", "POST", runs, { message: "a", temperature: 101 }, 400, "temperature"],
        ["title", "PATCH", `/api/conversations/${id}`, { title: "x".repeat(300) }, 400, "title"],
        ["leaf", "PATCH", `/api/conversations/${id}`, { leaf_id: "x" }, 400, "leaf_id"],
        ["user's leaf", "PATCH", `/api/conversations/${id}`, question, 400, "leaf_id"],
        ["limit", "GET", "/api/conversations?limit=0", undefined, 400, "limit"],
        ["before", "GET", "/api/conversations?before=x", undefined, 400, "before"],
        ["conversation", "GET", "/api/conversations/conv_x", undefined, 404, "id"],
        ["run", "GET", `/api/conversations/${id}/stream?run_id=run_x`, undefined, 404, "run_id"],
      ];
    for (const [what, method, path, body, status, param] of wrong) {
      const reply = await world.call(method, path, body);
      expect(reply.status, what).toBe(status);
      expect(reply.body.error.param, what).toBe(param);
      expect(reply.body.error.message, what).toMatch(/\.$/);
    }
    const stray = await fetch(`${world.url}/api/conversations/${id}/stream`, {
      headers: { "last-event-id": "abc" },
    });
    expect(stray.status).toBe(400);
    // Nothing of all that is kept.
    const { body } = await world.call("GET", `/api/conversations/${id}`);
    expect(body.messages).toHaveLength(2);
    expect(body.leaf_id).toBe(first.message_id);
  });

  test("what the engine refuses has its status, and leaves nothing behind", async () => {
    world = await createConversationsWorld();
    const { id } = (await world.call("POST", "/api/conversations", {})).body;
    world.chat.script = [{ fail: new FermataError("queue_full", "Too many.") }];
    const reply = await world.call("POST", `/api/conversations/${id}/runs`, { message: "Hi" });
    expect(reply.status).toBe(429);
    expect(reply.headers.get("retry-after")).toBe("1");
    const { body } = await world.call("GET", `/api/conversations/${id}`);
    expect(body).toMatchObject({ messages: [], leaf_id: null, run_id: null });
  });

  test("what is refused late, while the prompt is prepared, has its status too", async () => {
    world = await createConversationsWorld();
    const { id } = (await world.call("POST", "/api/conversations", {})).body;
    const refuse = async (): Promise<void> => {
      // Longer than a run waits for what is refused at once.
      await sleep(400);
      throw new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
    };
    world.chat.script = [{ prepare: refuse }];
    const reply = await world.call("POST", `/api/conversations/${id}/runs`, { message: "Hi" });
    expect(reply.status).toBe(400);
    const { body } = await world.call("GET", `/api/conversations/${id}`);
    expect(body).toMatchObject({ messages: [], leaf_id: null, run_id: null });
  });

  test("of two messages at once one waits for its turn, and is refused", async () => {
    world = await createConversationsWorld();
    const { id } = (await world.call("POST", "/api/conversations", {})).body;
    world.chat.script = [{ type: "content", text: "a" }, { hang: true }];
    const send = () => world.call("POST", `/api/conversations/${id}/runs`, { message: "Hi" });
    const replies = await Promise.all([send(), send(), send()]);
    expect(replies.map(({ status }) => status).toSorted()).toEqual([202, 409, 409]);
  });
});
