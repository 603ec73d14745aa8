/** A response that was written or waited for its client's outputs when its process ended: it goes on. */

import type { OpenStore, ResponseHold, ResponseStore } from "../../store/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import { interruptedCall } from "../../tools/oversight.ts";
import type { RunEvent } from "../../tools/types.ts";
import { clientServer, type RunContext } from "../answer/answer.ts";
import { finishInTurns } from "../../parts.ts";
import { withModel } from "../answer/model-use.ts";
import { modelFingerprint } from "../answer/completion-parts.ts";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { checkGoingOn, DrawnTokens } from "../answer/written-round.ts";
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
import { parseResponsesRequestInParts, type ResponsesRequest, waitsForOutputs } from "./request.ts";
import { itemsBefore, Retelling, roundBegin, withoutProgress, withToldTexts } from "./retelling.ts";
import { ResponseRun } from "./run.ts";
import type { KeptRound } from "./run-parts.ts";
import { mcpToolsOf, planTools } from "./tool-plan.ts";
import type { Item, McpCallItem, OutputItem, ResponseObject, WireEvent } from "./types.ts";
import { ResponseWriter } from "./writer.ts";

interface ReviveParts {
  asked: AskedCalls;
  store: OpenStore;
  context: Omit<RunContext, "target" | "startedAt"> & RouteContext;
  abort: AbortController;
}

/** Not begun yet. Null: it cannot go on here, and has ended in the store; or it is left to the next process. */
export async function revive(
  hold: ResponseHold,
  { asked, store, context, abort }: ReviveParts,
): Promise<ResponseRun | null> {
  const { owner, id } = hold;
  const stored = await store.responses.find(owner, id);
  const items = await store.responses.items(owner, id);
  if (stored === null || items === null) return null;
  try {
    const parts = { body: stored.body, items, asked, store, abort };
    const { signal } = abort;
    const options = { signal, isPatient: true };
    return await withModel(wantedModel(hold.request), context, options, async (own) => {
      const run = await revived(hold, { ...parts, context: own });
      own.lease?.until(run.ended);
      return run;
    });
  } catch (error) {
    const { code, message } = toFermataError(error);
    // The next process goes on with it.
    if (abort.signal.aborted && code === "engine_closed") return null;
    const isCancelled = code === "cancelled";
    if (!isCancelled) context.log.warn({ response: id, err: error }, "a response cannot go on");
    const end = isCancelled
      ? { status: "cancelled" }
      : { status: "failed", error: { code: "server_error", message } };
    const told = (await store.responses.events(owner, id)) as WireEvent[];
    const output = withToldTexts(items.output, told);
    await store.responses.update(owner, id, { ...stored.body, ...end }, output);
    return null;
  }
}

/** What an earlier process told of a response, and how far it was. */
interface Left {
  told: readonly WireEvent[];
  /** The model wrote no round to its end. */
  isFirst: boolean;
  /** Not to the end of what comes before the model's words. */
  opens: boolean;
  /** The model was writing, or about to. */
  isWritten: boolean;
  /** Where the round begins that it was writing. Null: nothing of it was told. */
  begin: number | null;
  retelling: Retelling;
  /** Of that round. */
  tokens: readonly number[];
}

/** @throws FermataError engine_crashed | request_quarantined: nobody can go on with it, or nobody may */
async function readLeft(
  { owner, id, round, next, resumes }: ResponseHold,
  store: OpenStore,
  fingerprint: string,
): Promise<Left> {
  const { at, fingerprint: before } = round as KeptRound;
  const isFirst = at !== "held";
  const opens = at === "created";
  const told = (await store.responses.events(owner, id)) as WireEvent[];
  const begin = opens ? null : roundBegin(told, next);
  const ofRound = opens
    ? told
    : withoutProgress(told).filter((event) => event.sequence_number >= (begin ?? Infinity));
  // The model may have begun before the first event.
  const tokens = await store.responses.eventTokens(id, isFirst ? 0 : next);
  const isWritten = isFirst || begin !== null;
  const fingerprints = [before, fingerprint] as const;
  checkGoingOn({ tokens, isTold: begin !== null, isWritten, resumes, fingerprints });
  return { told, isFirst, opens, isWritten, begin, retelling: new Retelling(ofRound), tokens };
}

async function revived(
  hold: ResponseHold,
  {
    body,
    items: { history, input, output },
    asked,
    store,
    context,
    abort,
  }: ReviveParts & {
    body: Record<string, unknown>;
    items: NonNullable<Awaited<ReturnType<ResponseStore["items"]>>>;
  },
): Promise<ResponseRun> {
  const { signal } = abort;
  const { owner, id, request: wire, next, deadline } = hold;
  const { turn } = hold.round as KeptRound;
  const fingerprint = modelFingerprint(context.services);
  const left = await readLeft(hold, store, fingerprint);
  const { told, isFirst, opens, isWritten, begin, retelling, tokens } = left;
  if (isWritten) await store.responses.countHold(id);

  const target = resolveTarget(wantedModel(wire), context);
  const asWritten = await finishInTurns(parseResponsesRequestInParts(wire, target, () => {}));
  const request = isFirst ? asWritten : goingOn(asWritten);
  if (mcpToolsOf(request).length > 0) await context.services.tools?.missing?.();
  const isHeld = waitsForOutputs(request, context.config);
  // The clock may have been set back: never longer than a new one.
  const timeoutMs = context.config.responsesToolTimeoutMs ?? defaultOutputTimeoutMs;
  const leftMs = isFirst ? timeoutMs : Math.min(Math.max(0, deadline - Date.now()), timeoutMs);
  const held = isHeld ? new HeldCalls(leftMs, (error) => abort.abort(error)) : null;
  const requested = await RequestedServers.connect([], null, signal);
  const sources = { provider: target.tools, requested };
  const plan = planTools(request, sources, held && ((tool) => held.tool(tool)));

  const known = output.filter((item) => !isClientOutput(item)) as unknown as OutputItem[];
  const all = told.length === 0 ? known : itemsBefore(told, begin ?? Infinity, known);
  for (const item of output) if (isClientOutput(item)) held?.remember(item as Item);
  const writer = new ResponseWriter({
    response: { ...body, output: [] } as unknown as ResponseObject,
    extended: (request.events ?? context.config.responsesEvents) === "extended",
    waitsForOutputs: isHeld,
    carriesReasoning: request.carriesReasoning,
    compacts: request.compacts,
    present: plan.present,
  });
  const last = Math.max(next, (told.at(-1)?.sequence_number ?? -1) + 1);
  if (opens) writer.goOn([], 0);
  else writer.goOn(itemsOf(all, told), last - retelling.left, retelling.ids);
  const open = writer.output.filter(
    (item): item is OutputItem & (ClientCallItem | McpCallItem) =>
      (isClientCall(item) || item.type === "mcp_call") && item.status === "in_progress",
  );
  const calls = open.filter(isClientCall);
  for (const { call_id: callId } of calls) held?.announce(callId);

  const drawn = new DrawnTokens(tokens);
  return new ResponseRun({
    owner,
    writer,
    abort,
    store,
    input: input as Item[],
    tellsId: true,
    held,
    revived: {
      told,
      retelling,
      opens,
      onLeft: async () => {
        if (isWritten) await store.responses.countHold(id, -1);
      },
    },
    resumesByRequest: request.handling === "held",
    wire,
    fingerprint: () => fingerprint,
    drawn,
    log: new EventLog(context.log, { response: id, compat: !isHeld }),
    lists: plan.lists.map((list, index) => ({ ...list, id: retelling.ids[index] ?? list.id })),
    foreign: [],
    approved: [],
    generate: async (sink) => {
      for (const item of open) if (!isClientCall(item)) await sink(interruptedEnd(item));
      if (held !== null) await tellOutputs(calls, { held, signal, sink });
      const said = isFirst
        ? writer.output.filter(({ type }) => type === "mcp_call")
        : transcriptOf(writer.output, held?.outputs ?? new Map());
      const items = [...(history as Item[]), ...(input as Item[]), ...(said as Item[])];
      const answer = { ...context.answer, id };
      const run = { ...context, target, answer, startedAt: performance.now() };
      const { callIds } = retelling;
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

/** What was said; of calls that were answered, the end was told. */
function itemsOf(items: readonly OutputItem[], told: readonly WireEvent[]): OutputItem[] {
  const closed = new Set(
    told.filter(({ type }) => type === done).map(({ item }) => (item as { id: string }).id),
  );
  return items.map((item) =>
    isClientCall(item) && closed.has(item.id) ? { ...item, status: "completed" } : item,
  );
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
