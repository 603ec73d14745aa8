/** A person is asked about a call, and the server restarts before, while and after it is answered. */

import { beforeEach, describe, expect, test } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { ToolProvider } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { callEvents, finish, provider } from "./fake-services.ts";
import { type Json } from "./responses-world.ts";
import { countedTool, restartWorld } from "./restart-world.ts";

const served = restartWorld([{ type: "content", text: "Done." }, finish("stop")]);
const { restart, send } = served;

describe("a request for approval", () => {
  const files = { type: "mcp", server_label: "files", require_approval: "always" };
  let ran: string[];
  const saving = (options?: Parameters<typeof countedTool>[2]): ToolProvider =>
    provider(countedTool(ran, "save", options));

  beforeEach(async () => {
    ran = [];
    await restart({ tools: saving({ approval: "always" }) });
  });

  /** The response that asks, and its request. */
  async function asked(body: object = {}): Promise<{ response: Json; asks: Json }> {
    const save: ToolCall = { id: "call_3", name: "save", arguments: `{"text":"milk"}` };
    served.world.chat.script = [...callEvents(save), finish("tool_calls", [save])];
    const input = { input: "Save milk.", tools: [files], ...body };
    const { body: response } = await send("POST", "/v1/responses", input);
    served.world.chat.script = served.answer;
    const asks = response.output.find(({ type }: Json) => type === "mcp_approval_request");
    expect(asks).toMatchObject({ name: "save", arguments: `{"text":"milk"}` });
    return { response, asks };
  }

  const consent = (id: string, approve = true) => ({
    type: "mcp_approval_response",
    approval_request_id: id,
    approve,
  });

  const approve = ({ response, asks }: { response: Json; asks: Json }) =>
    send("POST", "/v1/responses", {
      previous_response_id: response.id,
      input: [consent(asks.id)],
      tools: [files],
    });

  const callOf = ({ body }: { body: Json }): Json =>
    body.output.find(({ type }: Json) => type === "mcp_call");

  test("outlives the server: approved in the next one, the call runs once", async () => {
    const one = await asked();
    await restart({ tools: saving({ approval: "always" }) });
    const answered = await approve(one);
    expect(answered.body).toMatchObject({ status: "completed", error: null });
    expect(callOf(answered)).toMatchObject({
      output: "save: done",
      approval_request_id: one.asks.id,
    });
    expect(ran).toEqual(["save"]);
    // Whoever repeats the consent, as after a lost answer, gets the result of the call that ran.
    await restart({ tools: saving({ approval: "always" }) });
    expect(callOf(await approve(one))).toMatchObject({ output: "save: done" });
    expect(ran).toHaveLength(1);
  });

  test("of a stream is kept before the client sees it", async () => {
    const save: ToolCall = { id: "call_3", name: "save", arguments: `{"text":"milk"}` };
    served.world.chat.script = [...callEvents(save), { hang: true }];
    const input = { input: "Save milk.", tools: [files], background: true };
    const { body: created } = await send("POST", "/v1/responses", input);
    const asks = await eventually(async () => {
      const { body } = await send("GET", `/v1/responses/${created.id}`);
      const found = body.output.find(({ type }: Json) => type === "mcp_approval_request");
      expect(found).toBeDefined();
      return found as Json;
    });
    await restart({ tools: saving({ approval: "always" }) });
    expect(callOf(await approve({ response: created, asks }))).toMatchObject({
      output: "save: done",
    });
  });

  test("whose call was interrupted is not run again by a second consent, unless it only reads", async () => {
    for (const readOnly of [false, true]) {
      ran = [];
      await restart({ tools: saving({ hangs: true, readOnly }) });
      const one = await asked();
      const background = { input: [consent(one.asks.id)], tools: [files], background: true };
      await send("POST", "/v1/responses", { ...background, previous_response_id: one.response.id });
      await eventually(() => expect(ran).toHaveLength(1));
      // A second one while it runs.
      expect(await approve(one)).toMatchObject({ status: 409 });
      await restart({ tools: saving({ readOnly }) });
      const call = callOf(await approve(one));
      if (readOnly) expect(call).toMatchObject({ output: "save: done" });
      else expect(call.error).toContain("may have taken effect");
      expect(ran).toHaveLength(readOnly ? 2 : 1);
    }
  });

  test("about a call that may have run: a time-out does not speak for a later consent", async () => {
    await restart({ tools: saving({ hangs: true, approval: "always" }) });
    const one = await asked();
    const background = { input: [consent(one.asks.id)], tools: [files], background: true };
    await send("POST", "/v1/responses", { ...background, previous_response_id: one.response.id });
    await eventually(() => expect(ran).toHaveLength(1));
    await restart({
      tools: saving({ approval: "always" }),
      approvals: new Approvals({ timeoutMs: 50 }),
    });
    for (let count = 0; count < 2; count++) {
      const { error } = callOf(await approve(one));
      expect(error).toContain("nobody approved it within");
    }
    await restart({ tools: saving({ approval: "always" }) });
    const answer = approve(one);
    await eventually(async () => {
      const { body } = await send("GET", "/api/approvals");
      expect(body.approvals).toMatchObject([{ may_have_run: true }]);
      const [{ call_id: callId, asking_id: askingId }] = body.approvals;
      await send("POST", `/api/approvals/${callId}`, { decision: "approve", asking_id: askingId });
    });
    expect(callOf(await answer)).toMatchObject({ output: "save: done" });
    expect(ran).toHaveLength(2);
  });

  test("whose words the client changed is none of this server: a person is asked", async () => {
    const { asks } = await asked();
    await restart({ tools: saving({ approval: "always" }) });
    const input = [{ ...asks, arguments: `{"text":"beer"}` }, consent(asks.id)];
    const answer = send("POST", "/v1/responses", { input, tools: [files] });
    const waits = await eventually(async () => {
      const { body } = await send("GET", "/api/approvals");
      expect(body.approvals).toHaveLength(1);
      return body.approvals[0] as Json;
    });
    expect(waits).toMatchObject({ arguments: `{"text":"beer"}` });
    await send("POST", `/api/approvals/${waits.call_id}`, { decision: "deny" });
    expect(callOf(await answer).error).toContain("the user denied it");
    expect(ran).toEqual([]);
  });

  test("of a response that is not stored counts in its process only, and once", async () => {
    const { response, asks } = await asked({ store: false });
    const input = [...response.output, consent(asks.id)];
    const body = { input, tools: [files], store: false };
    expect(callOf(await send("POST", "/v1/responses", body))).toMatchObject({
      output: "save: done",
    });
    for (const isLater of [false, true]) {
      if (isLater) await restart({ tools: saving({ approval: "always" }) });
      const again = send("POST", "/v1/responses", body);
      const { call_id: callId } = await eventually(async () => {
        const { body: waiting } = await send("GET", "/api/approvals");
        expect(waiting.approvals).toHaveLength(1);
        return waiting.approvals[0] as Json;
      });
      await send("POST", `/api/approvals/${callId}`, { decision: "deny" });
      await again;
    }
    expect(ran).toHaveLength(1);
  });

  test.each([true, false])(
    "that gets two consents at once runs its call once (store: %s)",
    async (store) => {
      await restart({ tools: saving() });
      const { response, asks } = await asked({ store });
      const body = store
        ? { previous_response_id: response.id, input: [consent(asks.id)], tools: [files] }
        : { input: [...response.output, consent(asks.id)], tools: [files], store };
      const answers = await Promise.all([1, 2].map(() => send("POST", "/v1/responses", body)));
      expect(ran).toEqual(["save"]);
      const isRefused = ({ status }: { status: number }): boolean => status === 409;
      const [one, ...others] = answers.filter((answer) => !isRefused(answer)).map(callOf);
      expect(one).toMatchObject({ output: "save: done" });
      // One that comes when the call has begun is refused. Without a store only one of them gets the result.
      for (const { body: refusal } of answers.filter(isRefused))
        expect(refusal).toMatchObject({ error: { code: "already_decided" } });
      for (const other of others)
        if (store) expect(other).toMatchObject({ output: "save: done" });
        else expect(other.error).toContain("may have taken effect");
    },
  );

  test("is gone with its response", async () => {
    const one = await asked();
    const owner = "anonymous";
    expect(await served.store.responses.heldCall(owner, one.asks.id)).toMatchObject({
      responseId: one.response.id,
    });
    await send("DELETE", `/v1/responses/${one.response.id}`);
    expect(await served.store.responses.heldCall(owner, one.asks.id)).toBe(null);
    expect((await approve(one)).status).toBe(400);
  });
});
