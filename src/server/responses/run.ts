/** Runs one response from its plan to its last event, and stores it on the way. */

import type { HeldTurn } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import type { NumberedEvent } from "../../store/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { TokenTimes } from "../answer/token-times.ts";
import { BegunWork, LiveRun } from "../answer/live-run.ts";
import { toFermataError } from "../http/error-replies.ts";
import type { Preparation } from "../http/stream-answer.ts";
import { isClientCall, transcriptOf } from "./calls/client-calls.ts";
import { isCallDone } from "./events/client-call.ts";
import { tellsOfModel } from "./events/item.ts";
import type { McpCallResult } from "./events/mcp.ts";
import type { HeldCalls } from "./calls/held.ts";
import { ofInput } from "./request.ts";
import type { KeptRound, ResponseParts } from "./run-parts.ts";
import type { Item, ResponseObject, WireEvent } from "./types.ts";

/** A background response stores every event and may have many readers; others belong to their connection. */
export class ResponseRun extends LiveRun<WireEvent> {
  readonly held: HeldCalls | null;
  readonly resumesByRequest: boolean;
  readonly #parts: ResponseParts;
  #isCreated = false;
  /** What ends it takes the place of an HTTP status. */
  #isRefused = false;
  #isHoldKept = false;
  /** False: an event is being written. */
  #isKept = true;
  /** What ended it as `failed`. Null: nothing did, so far. */
  failure: FermataError | null = null;
  readonly #askers: ((response: ResponseObject) => void)[] = [];
  #ending: WireEvent[] | null = null;
  #lastUpdate: Promise<void> = Promise.resolve();

  constructor(parts: ResponseParts) {
    const { owner, writer, abort, store, revived, drawn } = parts;
    const { id, background } = writer.response;
    super({
      id,
      owner,
      abort,
      numberOf: (event) => event.sequence_number,
      keep:
        background || revived !== undefined
          ? async (events) => {
              const tokens = drawn?.take(events.some(tellsOfModel)) ?? [];
              if (background) await store?.responses.appendEvents(id, numbered(events, tokens));
            }
          : null,
      earlier: revived?.told,
    });
    this.accepted = { ...writer.response };
    this.#isCreated = revived !== undefined;
    this.#isHoldKept = revived !== undefined;
    this.held = parts.held;
    this.resumesByRequest = parts.resumesByRequest;
    this.#parts = parts;
  }

  /** What a client is told that does not wait for it: a background response is `queued`. */
  readonly accepted: ResponseObject;

  /** The response so far. */
  get response(): ResponseObject {
    const { response, output } = this.#parts.writer;
    return { ...response, output: [...output] };
  }

  /** The response, once what it has is in the store: nobody knows more of a background response than the next process will. */
  async kept(): Promise<ResponseObject> {
    if (this.#isKept || !this.response.background) return this.response;
    return await new Promise((resolve) => this.#askers.push(resolve));
  }

  #answerAskers(): void {
    this.#isKept = true;
    for (const answer of this.#askers.splice(0)) answer(this.response);
  }

  /**
   * Resolves at the first event. The events then continue to the last, even without readers.
   * @throws the error of a failure within `patienceMs` and before the first event, so it gets its HTTP status, unless
   *   it is told in the stream
   */
  async start(preparation: Preparation, patienceMs: number): Promise<void> {
    const { approved, generate, tellsId, isToldInStream, writer } = this.#parts;
    // Nothing slow runs before the generation.
    const work = approved.length === 0 ? new BegunWork<RunEvent>(generate) : null;
    try {
      if (work !== null && patienceMs > 0)
        await preparation.settle(work.first, patienceMs).catch((error: unknown) => {
          if (isToldInStream?.(error) !== true) throw error;
          this.#isRefused = true;
        });
      if (tellsId) await this.#create();
      // Approved calls run before the model does, and once.
      if (writer.response.background && approved.length === 0)
        await this.#keepRound(null, "created");
    } catch (error) {
      this.#parts.abort.abort(error);
      await work?.abandon(error);
      if (this.#isCreated) await this.#failUntold(error);
      throw error;
    }
    void this.#tellAll(work);
  }

  /** In place of `start`, of one that another process began. */
  goOn(): void {
    void this.#tellAll(new BegunWork<RunEvent>(this.#parts.generate));
  }

  /** Stores the outputs that came. */
  async keepOutputs(): Promise<void> {
    await this.#update();
  }

  /** Never rejects. Failures outside of the response go to the readers. */
  async #tellAll(begun: BegunWork<RunEvent> | null): Promise<void> {
    try {
      await this.#tell(await this.#generate(begun));
      this.finish();
    } catch (error) {
      this.finish(undefined, { error });
    } finally {
      this.#answerAskers();
    }
  }

  /** What comes before the model's words: all of it at once, but for calls that were approved. */
  async #open(): Promise<void> {
    const { writer, lists, foreign, approved } = this.#parts;
    await this.#tell([
      ...writer.begin(),
      ...writer.foreign(foreign),
      ...lists.flatMap((list) => writer.toolList(list)),
    ]);
    for (const { call, requestId, run } of approved) {
      await this.#tell(writer.approvedCall(call, requestId));
      await this.#tell(writer.answered(call.id, await run()));
    }
    writer.endRound();
  }

  /** @returns the last events */
  async #generate(begun: BegunWork<RunEvent> | null): Promise<WireEvent[]> {
    const { abort, generate, revived, writer } = this.#parts;
    try {
      if (revived?.isOpening ?? true) {
        // Nothing of it was told, or all.
        if (writer.next === 0) await this.#open();
        if (writer.response.background) await this.#keepRound(null, "begun");
      }
      const work = begun ?? new BegunWork<RunEvent>(generate);
      await work.deliver(async (event) => {
        this.#isKept = false;
        const news = revived === undefined ? event : revived.round.newPart(event);
        if (news !== null) await this.#onEvent(news);
        // Its end is told once that is in the store.
        if (this.#ending === null) this.#answerAskers();
      });
      if (this.#ending === null)
        throw new FermataError("internal_error", "The events ended without finish.");
      await this.#end(null);
      return this.#ending;
    } catch (error) {
      abort.abort(error);
      await begun?.abandon(error);
      const failure = toFermataError(error);
      if (failure.code === "engine_closed" && this.#outlivesProcess) {
        await revived?.onLeft().catch(() => {});
        throw failure;
      }
      const isCancelled = failure.code === "cancelled";
      if (!isCancelled) this.failure = failure;
      const ending = isCancelled ? writer.cancel() : this.#failed(failure);
      await this.#end(failure);
      return ending;
    }
  }

  #failed(failure: FermataError): WireEvent[] {
    const { writer } = this.#parts;
    return this.#isRefused ? writer.refuse(ofInput(failure)) : writer.fail(failure);
  }

  async #onEvent(event: RunEvent): Promise<void> {
    const { writer, timing, drawn } = this.#parts;
    switch (event.type) {
      case "tool-start":
      case "tool-report":
      case "tool-approval":
        return;
      case "tool-end":
        // The end of the response says what becomes of it.
        if (event.outcome === "cancelled") return;
        await this.#tell(writer.answered(event.call.id, resultOf(event)));
        // A call that ran does not run again, whatever becomes of the process.
        if (this.#outlivesProcess) await this.#update();
        return;
      case "finish":
        this.#ending = withTimings(
          writer.finish(event, Math.floor(Date.now() / 1000)),
          timing?.times,
        );
        return;
      case "progress":
        if (timing?.wanted.progress)
          await this.#tell(writer.progress(timing.times.progress(event, timing.wanted)));
        return;
      case "hold":
        await this.#tell(writer.write(event));
        // All calls of a round are written and wait for their outputs.
        await this.#update();
        if (event.calls.length === 0) return drawn?.lose();
        return await this.#keepRound(event.turn ?? null, "held");
      default:
        return await this.#tell(
          withTimings(writer.write(event), timing?.wanted.perToken ? timing.times : undefined),
        );
    }
  }

  async #tell(events: readonly WireEvent[]): Promise<void> {
    const { log, held, onAsked } = this.#parts;
    for (const event of events) {
      if (isCallDone(event.type)) held?.announce(this.#callIdOf(event));
      log.write(event);
      const item = event.type === "response.output_item.done" ? (event["item"] as Item) : null;
      if (item?.type === "mcp_approval_request") {
        await this.#update();
        await onAsked(item);
      }
    }
    await this.publish(...events);
  }

  #callIdOf(event: WireEvent): string {
    const item = this.#parts.writer.output.find(({ id }) => id === event["item_id"]);
    return item !== undefined && isClientCall(item) ? item.call_id : "";
  }

  /** Called before anybody learns the id. */
  async #create(): Promise<void> {
    if (this.#isCreated) return;
    this.#isCreated = true;
    const { owner, input, writer, store } = this.#parts;
    const {
      id,
      created_at: createdAt,
      previous_response_id: previous,
      conversation,
    } = writer.response;
    await store?.responses.create({
      id,
      owner,
      createdAt,
      previousResponseId: previous,
      conversationId: conversation?.id ?? null,
      body: this.#body,
      // What never fits is not stored.
      input: this.#isRefused ? [] : input,
    });
  }

  /** One after the other: an output that came is written beside the run, and a store with several connections keeps no order. */
  async #update(): Promise<void> {
    await this.#create();
    const update = this.#lastUpdate.then(async () => {
      const { owner, store } = this.#parts;
      await store?.responses.update(owner, this.id, this.#body, this.#transcript);
    });
    this.#lastUpdate = update.catch(() => {});
    await update;
  }

  /** It waits for its client or is written, and the store has what another process needs to go on. */
  get #outlivesProcess(): boolean {
    if (!this.#isHoldKept) return false;
    const waits = this.held !== null && this.held.pending.length > 0;
    return waits || (this.#parts.writer.response.background && this.#parts.drawn?.isKept === true);
  }

  async #keepRound(turn: HeldTurn | null, at: KeptRound["at"]): Promise<void> {
    const { owner, store, wire, writer, fingerprint, drawn } = this.#parts;
    const { held, id } = this;
    const waits = held !== null && held.pending.length > 0;
    if (store === null || wire === null || !(waits || writer.response.background)) return;
    const deadline = Date.now() + (held?.timeoutMs ?? 0);
    const round: KeptRound = { turn, at, fingerprint: fingerprint() };
    await store.responses.setHold({ owner, id, request: wire, round, next: writer.next, deadline });
    if (at === "held") drawn?.beginRound();
    else drawn?.begin();
    this.#isHoldKept = true;
  }

  /** Called before the last event, or the whole response, is sent. */
  async #end(failure: FermataError | null): Promise<void> {
    const { owner, store, writer, onEnd } = this.#parts;
    onEnd(failure, this.#transcript);
    await this.#update();
    // A cancelled one too: a turn that takes its place may bring the outputs of its calls.
    if (writer.response.conversation !== null && writer.response.status !== "failed")
      await store?.conversations.addResponse(owner, this.id);
  }

  /** Nobody has learned its id, so nobody waits for its end: it must not stand as in progress. */
  async #failUntold(error: unknown): Promise<void> {
    this.#parts.writer.fail(toFermataError(error));
    await this.#update().catch(() => {});
  }

  get #transcript(): Item[] {
    return transcriptOf(this.#parts.writer.output, this.held?.outputs ?? new Map());
  }

  get #body(): Record<string, unknown> {
    const { output: _output, ...body } = this.#parts.writer.response;
    return body;
  }
}

/** The last event has the times so far, if anybody measured them. */
function withTimings(events: WireEvent[], times: TokenTimes | undefined): WireEvent[] {
  const last = events.at(-1);
  const timings = times?.timings;
  if (last === undefined || timings === undefined) return events;
  return events.with(-1, { ...last, timings });
}

function resultOf({ outcome, content }: Extract<RunEvent, { type: "tool-end" }>): McpCallResult {
  return outcome === "ok" ? { output: content } : { error: content };
}

/** As the store has them. @param tokens drawn for them */
function numbered(events: readonly WireEvent[], tokens: readonly number[]): NumberedEvent[] {
  return events.map((event, index) => ({
    number: event.sequence_number,
    body: JSON.stringify(event),
    tokens: index === 0 ? tokens : [],
  }));
}
