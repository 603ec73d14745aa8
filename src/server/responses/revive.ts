/** A response that waited for its client's outputs when its process ended: it waits again, and goes on. */

import type { HeldTurn } from "../../chat/types.ts";
import type { ResponseHold, ResponseStore } from "../../store/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import { interruptedCall } from "../../tools/oversight.ts";
import type { RunEvent } from "../../tools/types.ts";
import { clientServer, type RunContext } from "../answer/answer.ts";
import { withModel } from "../answer/model-use.ts";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import type { RouteContext } from "../context.ts";
import { logError, toFermataError } from "../http/error-replies.ts";
import type { AskedCalls } from "./asked-calls.ts";
import {
  type ClientCallItem,
  isClientCall,
  isClientOutput,
  textOfCall,
  transcriptOf,
} from "./client-calls.ts";
import { done } from "./events/item.ts";
import { generateResponse } from "./generate.ts";
import { HeldCalls, defaultOutputTimeoutMs } from "./held.ts";
import { EventLog } from "./log.ts";
import { RequestedServers } from "./mcp-servers.ts";
import { parseResponsesRequest, type ResponsesRequest } from "./request.ts";
import { ResponseRun } from "./run.ts";
import { planTools } from "./tool-plan.ts";
import type { Item, OutputItem, ResponseObject, WireEvent } from "./types.ts";
import { ResponseWriter } from "./writer.ts";

interface ReviveParts {
  asked: AskedCalls;
  store: ResponseStore;
  context: Omit<RunContext, "target" | "startedAt"> & RouteContext;
  abort: AbortController;
}

/** Not begun yet. Null: it cannot go on here, and is failed in the store. */
export async function revive(
  hold: ResponseHold,
  { asked, store, context, abort }: ReviveParts,
): Promise<ResponseRun | null> {
  const { owner, id } = hold;
  const stored = await store.response(owner, id);
  const items = await store.responseItems(owner, id);
  if (stored === null || items === null) return null;
  try {
    const parts = { body: stored.body, items, asked, store, abort };
    const { signal } = abort;
    return await withModel(wantedModel(hold.request), context, { signal }, async (own) => {
      const run = await revived(hold, { ...parts, context: own });
      own.lease?.until(run.ended);
      return run;
    });
  } catch (error) {
    const { message } = toFermataError(error);
    context.log.warn({ response: id, err: error }, "a response that waited cannot go on");
    const failed = { ...stored.body, status: "failed", error: { code: "server_error", message } };
    await store.updateResponse(owner, id, failed, items.output);
    return null;
  }
}

async function revived(
  { owner, id, request: wire, round, next, deadline }: ResponseHold,
  {
    body,
    items: { history, input, output },
    asked,
    store,
    context,
    abort,
  }: ReviveParts & {
    body: Record<string, unknown>;
    items: NonNullable<Awaited<ReturnType<ResponseStore["responseItems"]>>>;
  },
): Promise<ResponseRun> {
  const { signal } = abort;
  const target = resolveTarget(wantedModel(wire), context);
  const request = goingOn(parseResponsesRequest(wire, target, () => {}));
  // The clock may have been set back: never longer than a new one.
  const leftMs = Math.min(
    Math.max(0, deadline - Date.now()),
    context.config.responsesToolTimeoutMs ?? defaultOutputTimeoutMs,
  );
  const held = new HeldCalls(leftMs, (error) => abort.abort(error));
  const requested = await RequestedServers.connect([], null, signal);
  const plan = planTools(request, { provider: target.tools, requested }, (tool) => held.tool(tool));

  const told = (await store.events(owner, id)) as WireEvent[];
  const said = itemsOf(output, told);
  for (const item of output) if (isClientOutput(item)) held.remember(item as Item);
  const writer = new ResponseWriter({
    response: { ...body, output: [] } as unknown as ResponseObject,
    extended: (request.events ?? context.config.responsesEvents) === "extended",
    waitsForOutputs: true,
    present: plan.present,
  });
  writer.goOn(said, Math.max(next, (told.at(-1)?.sequence_number ?? -1) + 1));
  const calls = writer.output.filter(
    (item): item is OutputItem & ClientCallItem =>
      isClientCall(item) && item.status === "in_progress",
  );
  for (const { call_id: callId } of calls) held.announce(callId);

  return new ResponseRun({
    owner,
    writer,
    abort,
    store,
    input: input as Item[],
    tellsId: true,
    held,
    earlier: told,
    resumesByRequest: request.handling === "held",
    wire,
    log: new EventLog(context.log, { response: id, compat: false }),
    lists: [],
    foreign: [],
    approved: [],
    generate: async (sink) => {
      await tellOutputs(calls, { held, signal, sink });
      const transcript = transcriptOf(writer.output, held.outputs);
      const items = [...(history as Item[]), ...(input as Item[]), ...transcript];
      const answer = { ...context.answer, id };
      const run = { ...context, target, answer, startedAt: performance.now() };
      const heldTurn = round as HeldTurn | null;
      const parts = { items, plan, signal, owner, heldTurn, context: run };
      await generateResponse(request, parts, sink);
    },
    onAsked: (item) => asked.remember(owner, item, id),
    onEnd: (failure) => {
      if (failure !== null && failure.code !== "cancelled") logError(failure, context);
    },
  });
}

/** A call that was required has been made. */
function goingOn(request: ResponsesRequest): ResponsesRequest {
  return { ...request, guidance: { ...request.guidance, toolChoice: "auto" } };
}

/** What was said, as far as it was told. */
function itemsOf(output: readonly { type: string }[], told: readonly WireEvent[]): OutputItem[] {
  const closed = new Set(
    told.filter(({ type }) => type === done).map(({ item }) => (item as { id: string }).id),
  );
  return (output as OutputItem[]).flatMap((item): OutputItem[] => {
    if (isClientOutput(item as unknown as Item)) return [];
    if (item.type === "mcp_call" && item.status === "in_progress")
      return [{ ...item, status: "failed", error: interruptedCall }];
    return [isClientCall(item) && closed.has(item.id) ? { ...item, status: "completed" } : item];
  });
}

/** Waits for all of them, and tells them as the tool loop would. */
async function tellOutputs(
  calls: readonly ClientCallItem[],
  { held, signal, sink }: { held: HeldCalls; signal: AbortSignal; sink: Sink<RunEvent> },
): Promise<void> {
  const results = await Promise.all(calls.map(({ call_id: callId }) => held.wait(callId, signal)));
  signal.throwIfAborted();
  for (const [index, call] of calls.entries())
    await sink({
      type: "tool-end",
      call: { id: call.call_id, name: call.name, arguments: textOfCall(call) },
      server: clientServer,
      outcome: "ok",
      content: results[index]!.content,
      citations: [],
      milliseconds: 0,
    });
}
