/** A response that was written or waited for its client's outputs when its process ended: it goes on. */

import type { FermataError } from "../../errors.ts";
import type { OpenStore, ResponseHold, ResponseItems } from "../../store/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import { interruptedCall } from "../../tools/oversight.ts";
import type { RunEvent } from "../../tools/types.ts";
import { clientServer, type RunContext } from "../answer/answer.ts";
import { finishInTurns } from "../../parts.ts";
import { modelFingerprint } from "../answer/completion-parts.ts";
import { goOnWith } from "../answer/left-runs.ts";
import type { LiveRuns } from "../answer/live-run.ts";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { checkGoingOn, DrawnTokens } from "../answer/written-round.ts";
import type { RouteContext } from "../context.ts";
import { logError } from "../http/error-replies.ts";
import type { AskedCalls } from "./calls/asked-calls.ts";
import {
  type ClientCallItem,
  isClientCall,
  isClientOutput,
  textOfCall,
  transcriptOf,
} from "./calls/client-calls.ts";
import { generateResponse } from "./generate.ts";
import { HeldCalls, defaultOutputTimeoutMs } from "./calls/held.ts";
import { EventLog } from "./events/log.ts";
import { RequestedServers } from "./tools/mcp-servers.ts";
import {
  configured,
  parseResponsesRequest,
  type ResponsesRequest,
  waitsForOutputs,
} from "./request.ts";
import { ResponseRun } from "./run.ts";
import type { KeptRound } from "./run-parts.ts";
import { toldOutput, toldRound, withToldTexts } from "./events/told-output.ts";
import { mcpToolsOf, planTools } from "./tools/tool-plan.ts";
import type { Item, McpCallItem, OutputItem, ResponseObject, WireEvent } from "./types.ts";
import { ResponseWriter } from "./events/writer.ts";

export type LeftContext = Omit<RunContext, "target" | "startedAt"> & RouteContext;

interface Reviving {
  live: LiveRuns<ResponseRun>;
  asked: AskedCalls;
  store: OpenStore;
  context: LeftContext;
}

/** Takes over what another process left: it goes on, or ends. */
export async function reviveLeft({ live, asked, store, context }: Reviving): Promise<void> {
  await goOnWith(await store.responses.takeHolds(), {
    expected: live.expected,
    context,
    modelOf: ({ request }) => wantedModel(request),
    begin: async (hold, own, abort) => {
      const stored = await read(hold, store).catch((error: unknown) => {
        // The next process reads it.
        context.log.error({ run: hold.id, err: error }, "a run was not taken over");
        return null;
      });
      if (stored === null) return null;
      const run = await revive(hold, { ...stored, asked, store, context: own, abort });
      live.add(run);
      run.goOn();
      return run;
    },
    fail: (hold, failure) => fail(hold, failure, store),
  });
}

interface Stored {
  body: Record<string, unknown>;
  items: ResponseItems;
}

async function read({ owner, id }: ResponseHold, store: OpenStore): Promise<Stored | null> {
  const found = await store.responses.find(owner, id);
  const items = await store.responses.items(owner, id);
  return found && items && { body: found.body, items };
}

/** With what was told of it. */
async function fail(
  hold: ResponseHold,
  { code, message }: FermataError,
  store: OpenStore,
): Promise<void> {
  const stored = await read(hold, store);
  if (stored === null) return;
  const { owner, id } = hold;
  const end =
    code === "cancelled"
      ? { status: "cancelled" }
      : { status: "failed", error: { code: "server_error", message } };
  const told = (await store.responses.events(owner, id)) as WireEvent[];
  const output = withToldTexts(stored.items.output, told);
  await store.responses.update(owner, id, { ...stored.body, ...end }, output);
}

/** Not begun yet. @throws FermataError: it cannot go on */
async function revive(
  { owner, id, request: wire, round, next, deadline, resumes }: ResponseHold,
  {
    body,
    items: { history, input, output },
    asked,
    store,
    context,
    abort,
  }: Stored & Omit<Reviving, "live"> & { abort: AbortController },
): Promise<ResponseRun> {
  const { signal } = abort;
  const { at, turn, fingerprint: before } = round as KeptRound;
  const fingerprint = modelFingerprint(context.services);
  const isFirst = at !== "held";
  const isOpening = at === "created";
  const events = (await store.responses.events(owner, id)) as WireEvent[];
  const known = output.filter((item) => !isClientOutput(item)) as unknown as OutputItem[];
  const told = toldOutput(events, known, { id, next, isOpening });
  const { isBegun, roundAt, isWhole } = told;
  // The model may have begun before the first event.
  const tokens = await store.responses.eventTokens(id, isFirst ? 0 : next);
  const isWritten = isFirst || isBegun;
  const fingerprints = [before, fingerprint] as const;
  checkGoingOn({ tokens, isTold: isBegun, isWritten, resumes, fingerprints });
  if (isWritten) await store.responses.countResume(id);

  const target = resolveTarget(wantedModel(wire), context);
  const asWritten = await finishInTurns(parseResponsesRequest(wire, target, () => {}));
  const conversation = { items: history as Item[], input: input as Item[] };
  const given = configured(asWritten, conversation);
  const request = isFirst ? given : goingOn(given);
  if (mcpToolsOf(request).length > 0) await context.services.tools?.missing?.();
  const isHeld = waitsForOutputs(request, context.config);
  // The clock may have been set back: never longer than a new one.
  const timeoutMs = context.config.responsesToolTimeoutMs ?? defaultOutputTimeoutMs;
  const leftMs = isFirst ? timeoutMs : Math.min(Math.max(0, deadline - Date.now()), timeoutMs);
  const held = isHeld ? new HeldCalls(leftMs, (error) => abort.abort(error)) : null;
  const requested = await RequestedServers.connect([], null, signal);
  const sources = { provider: target.tools, requested };
  const items = [...conversation.items, ...conversation.input];
  const plan = planTools(request, sources, held && ((tool) => held.tool(tool)), items);

  for (const item of output) if (isClientOutput(item)) held?.remember(item as Item);
  const writer = new ResponseWriter({
    response: { ...body, output: [] } as unknown as ResponseObject,
    extended: (request.events ?? context.config.responsesEvents) === "extended",
    waitsForOutputs: isHeld,
    carriesReasoning: request.carriesReasoning,
    compacts: request.compacts,
    present: plan.present,
  });
  writer.goOn(told);
  for (const item of writer.output)
    if (isOpen(item) && isClientCall(item) && isWhole(item)) held?.announce(item.call_id);
  /** Of rounds before the one that the model was writing. */
  const said = (): OutputItem[] => writer.output.slice(0, roundAt);

  const drawn = new DrawnTokens(tokens);
  const { round: toldAgain, callIds } = toldRound(told);
  return new ResponseRun({
    owner,
    writer,
    abort,
    store,
    input: input as Item[],
    tellsId: true,
    held,
    revived: {
      told: events,
      round: toldAgain,
      isOpening,
      onLeft: async () => {
        if (isWritten) await store.responses.countResume(id, -1);
      },
    },
    resumesByRequest: request.handling === "held",
    wire,
    fingerprint: () => fingerprint,
    drawn,
    log: new EventLog(context.log, { response: id, compat: !isHeld }),
    lists: plan.lists,
    foreign: [],
    approved: [],
    generate: async (sink) => {
      const waiting = said().filter(isOpen);
      for (const item of waiting) if (!isClientCall(item)) await sink(interruptedEnd(item));
      if (held !== null) await tellOutputs(waiting.filter(isClientCall), { held, signal, sink });
      const answered = isFirst
        ? said().filter(({ type }) => type === "mcp_call")
        : transcriptOf(said(), held?.outputs ?? new Map());
      const items = [...(history as Item[]), ...(input as Item[]), ...(answered as Item[])];
      const answer = { ...context.answer, id };
      const run = { ...context, target, answer, startedAt: performance.now() };
      const parts = {
        items,
        plan,
        signal,
        owner,
        onTokens: drawn.draw,
        heldTurn: isFirst ? undefined : turn,
        written: tokens.length === 0 ? undefined : { tokens, callIds },
        context: run,
      };
      await generateResponse(request, parts, sink);
    },
    onAsked: (item) => asked.remember(owner, item, id),
    onEnd: (failure) => {
      if (failure !== null && failure.code !== "cancelled") logError(failure, context);
    },
  });
}

function isOpen(item: OutputItem): item is OutputItem & (ClientCallItem | McpCallItem) {
  return (isClientCall(item) || item.type === "mcp_call") && item.status === "in_progress";
}

/** Of such a call nobody knows whether it took effect. */
function interruptedEnd({
  id,
  name,
  arguments: args,
  server_label: server,
}: McpCallItem): RunEvent {
  return {
    type: "tool-end",
    call: { id, name, arguments: args },
    server,
    outcome: "error",
    content: interruptedCall,
    citations: [],
    milliseconds: 0,
  };
}

/** A call that was required has been made. */
function goingOn(request: ResponsesRequest): ResponsesRequest {
  return { ...request, guidance: { ...request.guidance, toolChoice: "auto" } };
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
