// Commands of `fermata chat`, against a server over a real socket.
import { afterEach, expect, test } from "vitest";
import { ChatApi } from "../../src/cli/chat/connect.ts";
import { OpenConversation } from "../../src/cli/chat/conversation.ts";
import { runSlashCommand } from "../../src/cli/chat/slash-commands.ts";
import type { RunStarted } from "../../src/client/types.ts";
import { type ConversationsWorld, createConversationsWorld } from "./conversations-world.ts";
import { finish } from "./fake-services.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

test("/branch keeps the files of the question", async () => {
  world = await createConversationsWorld();
  world.chat.script = [{ type: "content", text: "Alpha." }, finish("stop")];
  const { id } = (await world.call("POST", "/api/conversations", {})).body;
  const path = `/api/conversations/${id}`;
  const first = { message: "Read.", files: [{ name: "a.txt", text: "alpha" }] };
  const { body: started } = await world.call<RunStarted>("POST", `${path}/runs`, first);
  await world.read(started.stream_url);

  const api = new ChatApi(world.url, undefined);
  const unset = { model: undefined, tools: undefined, instructions: undefined };
  const conversation = new OpenConversation(api, unset);
  await conversation.open("last");
  const context = { api, conversation, cwd: "/", line: () => {}, show: async () => {} };
  const outcome = await runSlashCommand("/branch 1 Read again.", context);
  if (outcome === null || outcome === "quit") throw new TypeError("nothing is to be run");
  await world.read((await outcome.run()).stream_url);

  const { messages } = (await world.call("GET", path)).body;
  const files = [{ name: "a.txt", characters: 5 }];
  expect(messages.filter(({ role }) => role === "user")).toMatchObject([
    { id: started.user_message_id, message: "Read.", parent_id: null, files },
    { message: "Read again.", parent_id: null, files },
  ]);
});
