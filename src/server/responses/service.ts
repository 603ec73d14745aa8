/** Starts, reads, cancels and keeps the responses of one server. */

import { needStore, noResponse } from "../body/stored.ts";
import { FermataError } from "../../errors.ts";
import type { PromptRequest } from "../../chat/types.ts";
import { isAtWork } from "../../store/response-state.ts";
import type { OpenStore, SharedStore, StoredItem } from "../../store/types.ts";
import type { ToolProvider } from "../../tools/types.ts";
import { fieldError } from "../body/field.ts";
import { newId } from "../answer/ids.ts";
import { LiveRuns } from "../answer/live-run.ts";
import { cancelElsewhere } from "../answer/shared-runs.ts";
import { finishInTurns } from "../../parts.ts";
import { longestDelayMs } from "../../waits.ts";
import { toMessages } from "./input/messages.ts";
import { type ResponsesRequest, configured, newResponse, waitsForOutputs } from "./request.ts";
import { checkToolChoice } from "../body/tools.ts";
import { WaitingResponses } from "./calls/waiting.ts";
import { ResponseWriter } from "./events/writer.ts";
import type { Item, WireEvent } from "./types.ts";
import type { ActiveRequests } from "../http/requests.ts";
import { logError } from "../http/error-replies.ts";
import type { ClientHistory, HistoryGaps } from "../http/history-gaps.ts";
import { oversightOf, type RunContext } from "../answer/answer.ts";
import type { RouteContext } from "../context.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import { Preparation, openStreamAfterMs } from "../http/stream-answer.ts";
import { definitionsOf, type ToolMode } from "../answer/target.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { DrawnTokens } from "../answer/written-round.ts";
import { modelFingerprint } from "../answer/completion-parts.ts";
import { AskedCalls } from "./calls/asked-calls.ts";
import { mcpToolsOf, planTools } from "./tools/tool-plan.ts";
import { EventLog } from "./events/log.ts";
import { HeldCalls, defaultOutputTimeoutMs } from "./calls/held.ts";
import { callsOfItems, isClientOutput, isConsent } from "./calls/client-calls.ts";
import { clientHistory, closeEarlierCalls, type History, loadHistory } from "./input/history.ts";
import { RequestedServers } from "./tools/mcp-servers.ts";
import { ResponseRun } from "./run.ts";
import { storedEvents } from "./events/stored-events.ts";
import { type LeftContext, reviveLeft } from "./revive.ts";
import { generateResponse } from "./generate.ts";

const defaultToolTimeoutMs = 60_000;
/** Time to connect a request's own MCP servers, when only its prompt is needed. */
const maxConnectMs = 30_000;

export interface StartContext extends RunContext {
  active: ActiveRequests;
  owner: string;
  /** Aborted when the client's connection closes; a background response continues. */
  signal: AbortSignal;
  /** The body as it came. */
  wire: unknown;
  /** A response that its connection remembers. */
  recalled?: RecalledResponse | null;
}

/** What `previous_response_id` may name although it is not stored. */
export interface RecalledResponse {
  id: string;
  /** What it read, and its output. */
  items: readonly Item[];
}

export interface ResponsesContext extends RouteContext {
  responses: ResponseService;
}

export type Started =
  | {
      kind: "new";
      run: ResponseRun;
      /** Headers that name what is missing in the history. */
      headers: Record<string, string>;
      /** What the model reads. */
      items: readonly Item[];
    }
  /** The request has the outputs that a held response waits for, so that response continues. */
  | { kind: "resumed"; id: string };

export class ResponseService {
  readonly live = new LiveRuns<ResponseRun>();
  readonly waiting: WaitingResponses;
  readonly store: OpenStore | null;
  readonly #config: ServerConfig;
  readonly #gaps: HistoryGaps;
  readonly #asked: AskedCalls;
  readonly #shared: SharedStore | null;

  constructor({ config, gaps, services }: Pick<RouteContext, "config" | "gaps" | "services">) {
    const { store } = services;
    this.store = store;
    this.#shared = store?.shared ?? null;
    this.#config = config;
    this.#gaps = gaps;
    this.#asked = new AskedCalls(store);
    this.waiting = new WaitingResponses(this.live, store);
  }

  /** @throws FermataError of status 4xx before anything runs */
  async start(given: ResponsesRequest, context: StartContext): Promise<Started> {
    const { owner } = context;
    const resumed = await this.resume(given, owner);
    if (resumed !== null) return { kind: "resumed", id: resumed };
    const history = await this.#history(given, context);
    const request = configured(given, history);
    const calls = clientHistory(request.promptCacheKey, owner, history);
    // One that only reads a prompt in advance may have no more than its beginning.
    const isRead = request.maxOutputTokens === 0;
    const headers = isRead ? {} : this.#gaps.report(calls, context.log);

    // When the server closes, a background response has as much time as requests.
    const work = request.background ? context.active.begin() : null;
    const abort = work?.controller ?? new AbortController();
    const signal = work === null ? AbortSignal.any([abort.signal, context.signal]) : abort.signal;
    const connector = context.services.requestedServers ?? null;
    let requested: RequestedServers | null = null;
    const end = async (): Promise<void> => {
      await requested?.close();
      work?.end();
    };
    try {
      requested = await RequestedServers.connect(mcpToolsOf(request), connector, signal);
      const run = await this.#plan(request, context, { history, calls, requested, abort, signal });
      // In the background: until its tokens are counted, so that what never fits is not stored.
      const patienceMs = request.background
        ? 20
        : request.stream
          ? openStreamAfterMs
          : longestDelayMs;
      await run.start(context.preparation ?? new Preparation(), patienceMs);
      this.live.add(run);
      void run.ended.then(end);
      context.lease?.until(run.ended);
      return { kind: "new", headers, run, items: [...history.items, ...history.input] };
    } catch (error) {
      await end();
      throw error;
    }
  }

  /**
   * A response that the request continues, or whose place it takes, goes on or ends: no model is needed for it.
   * @returns the id of the response that continues
   */
  async resume(request: ResponsesRequest, owner: string): Promise<string | null> {
    // A response that cannot be stored is refused first.
    this.#stores(request);
    const follows = request.previousResponseId !== null || request.input.some(isClientOutput);
    return follows ? await this.waiting.meetPrevious(request, owner) : null;
  }

  /** What is not stored is input of the response: a stored one must not refer to it. */
  async #history(
    request: ResponsesRequest,
    { owner, recalled = null }: StartContext,
  ): Promise<History> {
    if (recalled === null || request.previousResponseId !== recalled.id)
      return await loadHistory(request, owner, this.store);
    const { items, input } = await loadHistory(request, owner, this.store, recalled.items);
    return { items: [], input: [...items, ...input] };
  }

  async #plan(
    request: ResponsesRequest,
    context: StartContext,
    parts: {
      history: History;
      calls: ClientHistory;
      requested: RequestedServers;
      abort: AbortController;
      signal: AbortSignal;
    },
  ): Promise<ResponseRun> {
    const { history, calls, requested, abort, signal } = parts;
    const { owner } = context;
    const stores = this.#stores(request);
    const items = [...history.items, ...history.input];
    const isHeld = waitsForOutputs(request, this.#config);
    const held = isHeld ? this.#heldCalls(request, abort) : null;
    const sources = { provider: context.target.tools, requested };
    const plan = planTools(request, sources, held && ((tool) => held.tool(tool)), items);
    checkToolChoice(plan.toolChoice, definitionsOf(plan.mode));
    const approved = history.input.some(isConsent)
      ? this.#asked.approved(history.items, history.input, plan, {
          timeoutMs: this.#config.toolTimeoutMs ?? defaultToolTimeoutMs,
          totalTimeoutMs: this.#config.toolTotalTimeoutMs,
          signal,
          oversight: oversightOf(context, owner),
        })
      : [];

    const createdAt = Math.floor(Date.now() / 1000);
    const model = context.target.id;
    const id = newId("resp", this.#config.replica);
    const isExtended = (request.events ?? this.#config.responsesEvents) === "extended";
    const writer = new ResponseWriter({
      response: newResponse(request, { id, createdAt, model, stores }),
      extended: isExtended,
      waitsForOutputs: isHeld,
      carriesReasoning: request.carriesReasoning,
      compacts: request.compacts,
      present: plan.present,
    });
    const log = new EventLog(context.log, { response: id, compat: !isHeld });
    const earlier = await closeEarlierCalls(history.items, {
      previous: request.previousResponseId,
      owner,
      store: this.store,
      log,
    });
    const times = new TokenTimes(context.metrics, context.startedAt);
    const drawn = request.background ? new DrawnTokens() : null;
    return new ResponseRun({
      owner,
      writer,
      abort,
      store: stores ? this.store : null,
      input: history.input,
      tellsId: request.stream || request.background,
      ...(request.stream && !request.background ? { isToldInStream: isFullContext } : {}),
      held,
      resumesByRequest: request.handling === "held",
      // The credentials of a server of its own are not kept, so that it cannot go on elsewhere.
      wire: mcpToolsOf(request).every(({ address }) => address === null) ? context.wire : null,
      fingerprint: () => modelFingerprint(context.services),
      drawn,
      log,
      timing: { times, wanted: request.times },
      lists: plan.lists,
      foreign: isExtended ? earlier : [],
      approved,
      generate: (sink) => {
        const approvedItems = writer.output.filter(({ type }) => type === "mcp_call");
        const read = [...items, ...(approvedItems as unknown as Item[])];
        const run = { ...context, times, answer: { ...context.answer, id } };
        const parts = { items: read, plan, signal, owner, onTokens: drawn?.draw, context: run };
        return generateResponse(request, parts, sink);
      },
      onAsked: (item) => this.#asked.remember(owner, item, stores ? id : null),
      onEnd: (failure, transcript) => {
        if (failure !== null && failure.code !== "cancelled") logError(failure, context);
        const issued = callsOfItems(transcript).map((call) => call.id);
        this.#gaps.learn(calls, issued);
      },
    });
  }

  /** @throws FermataError not_found */
  async retrieve(owner: string, id: string): Promise<object> {
    const live = this.live.find(owner, id);
    if (live !== null) return await live.kept();
    const found = await this.store?.responses.find(owner, id);
    const items = await this.store?.responses.items(owner, id);
    if (!found || !items) throw noResponse(id);
    const output = items.output.filter((item) => !isClientOutput(item));
    return { ...found.body, output };
  }

  /** The events above `after`. @throws FermataError not_found | invalid_value: they were not kept */
  async replay(
    owner: string,
    id: string,
    after: number,
    viewer: AbortSignal,
  ): Promise<AsyncGenerator<WireEvent, void, void>> {
    const live = this.live.find(owner, id);
    if (live !== null && live.response.background) return live.read(after, viewer);
    const { store } = this;
    const response = (): Promise<object> => this.retrieve(owner, id);
    if (this.live.expected.has(owner, id) && isBackground(await response()))
      return this.live.later(id, viewer, () => this.replay(owner, id, after, viewer));
    return await storedEvents({ owner, id, store, response, viewer }, after);
  }

  /** @throws FermataError not_found */
  async delete(owner: string, id: string): Promise<void> {
    const reason = new FermataError("cancelled", "The response was deleted.");
    const wasHere = await this.live.end(owner, id, reason);
    if (!wasHere && this.#shared !== null) {
      const found = await this.store?.responses.find(owner, id);
      if (found && isAtWork(found.body)) await cancelElsewhere(id, this.#shared);
    }
    const isDeleted = await this.store?.responses.delete(owner, id);
    if (isDeleted !== true && !wasHere) throw noResponse(id);
  }

  /** A response that has ended stays as it is. @throws FermataError not_found | invalid_value */
  async cancel(owner: string, id: string): Promise<object> {
    if (!isBackground(await this.retrieve(owner, id))) {
      // OpenAI's words.
      const message = "Cannot cancel a synchronous response. Close its connection to end it.";
      throw new FermataError("invalid_value", message, { param: "id" });
    }
    const reason = new FermataError("cancelled", "The response was cancelled.");
    const wasHere = await this.live.end(owner, id, reason);
    if (!wasHere && this.#shared !== null) await cancelElsewhere(id, this.#shared);
    return await this.retrieve(owner, id);
  }

  /** The items that the model read, the oldest first. @throws FermataError not_found */
  async inputItems(owner: string, id: string): Promise<StoredItem[]> {
    const items = await this.store?.responses.items(owner, id);
    if (!items) throw noResponse(id);
    return [...items.history, ...items.input];
  }

  /** Takes over what another process left waiting or unfinished. */
  async adopt(context: LeftContext): Promise<void> {
    const { live, store } = this;
    if (store !== null) await reviveLeft({ live, asked: this.#asked, store, context });
  }

  /** The whole prompt that `start` would give the model. */
  async prompt(
    given: ResponsesRequest,
    owner: string,
    services: {
      tools: Pick<ToolProvider, "tools" | "servers"> | null;
      requestedServers?: ServerServices["requestedServers"];
    },
  ): Promise<PromptRequest & { items: Item[]; mode: ToolMode }> {
    const history = await loadHistory(given, owner, this.store);
    const request = configured(given, history);
    const connector = services.requestedServers ?? null;
    // Not AbortSignal.timeout: in Node 20 what is made of one by AbortSignal.any may never hear of it.
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), maxConnectMs);
    const servers = RequestedServers.connect(mcpToolsOf(request), connector, patience.signal);
    const requested = await servers.finally(() => clearTimeout(timer));
    try {
      const items = [...history.items, ...history.input];
      const plan = planTools(request, { provider: services.tools, requested }, null, items);
      const messages = await finishInTurns(toMessages(items, request.instructions, plan.names));
      const { templateVariables } = request;
      const { mode, offered: tools } = plan;
      return { items, messages, mode, tools, templateVariables, owner };
    } finally {
      await requested.close();
    }
  }

  #stores(request: ResponsesRequest): boolean {
    if (request.background) {
      needStore(this.store, "background");
      if (request.store === false) {
        const problem = "must not be false for a background response: nobody could read it";
        throw fieldError("invalid_value", "store", problem, "Leave it out");
      }
    }
    return this.store !== null && request.store !== false;
  }

  #heldCalls(request: ResponsesRequest, abort: AbortController): HeldCalls {
    if (!request.stream && !request.background) {
      const problem = "is held, and without stream or background nobody would see the calls";
      throw fieldError("invalid_value", "fermata.tools", problem, "Send stream: true");
    }
    const timeoutMs = this.#config.responsesToolTimeoutMs ?? defaultOutputTimeoutMs;
    return new HeldCalls(timeoutMs, (error) => abort.abort(error));
  }
}

/** Codex looks for it in the events of a stream, as OpenAI tells it, and not in a 400. */
function isFullContext(error: unknown): boolean {
  return error instanceof FermataError && error.code === "context_length_exceeded";
}

function isBackground(response: object): boolean {
  return (response as { background?: boolean }).background === true;
}
