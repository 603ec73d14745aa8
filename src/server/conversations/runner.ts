/** Starts runs and drives them to their end, with or without viewers. */

import { applyEvent, type ConversationState } from "../../client/conversation-state.ts";
import type { ConversationEvent, EndDetail, RunUsage } from "../../client/types.ts";
import type { ChatEvent, ChatUsage } from "../../chat/types.ts";
import { HeldChat } from "../../agents/held-chat.ts";
import { FermataError } from "../../errors.ts";
import { isOfModel, Transcript } from "../../tools/transcript.ts";
import type { BranchedRun, BranchStore, InterruptedRun, NumberedEvent } from "../../store/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import { newId } from "../answer/ids.ts";
import { BegunWork, LiveRun, LiveRuns } from "../answer/live-run.ts";
import { takenOver } from "../answer/shared-runs.ts";
import { modelFingerprint, wireUsage } from "../answer/completion-parts.ts";
import type { OnceWarnings } from "../body/warnings.ts";
import type { ActiveRequests } from "../http/requests.ts";
import { logError, toFermataError } from "../http/error-replies.ts";
import { runEvents, type RunContext } from "../answer/answer.ts";
import { Preparation } from "../http/stream-answer.ts";
import { resolveTarget } from "../answer/target.ts";
import { EarlierEvents } from "./earlier-events.ts";
import { HeldRounds, resumptionOf, stateOf } from "./held-round.ts";
import { type AnswerBody, answerBody, type Message, newAnswer } from "./message-body.ts";
import { RunMapper } from "./run-mapper.ts";
import { modeOf, planRun, type RunStart, titleOf } from "./run-plan.ts";

export interface RunnerContext extends Omit<RunContext, "target"> {
  active: ActiveRequests;
  warnings: OnceWarnings;
}

/** A failure within this time, or during the preparation, gets its HTTP status, and nothing is stored. */
const patienceMs = 150;

type Finish = Extract<ChatEvent, { type: "finish" }>;

/** A current run. */
class ConversationRun extends LiveRun<NumberedEvent> {
  readonly run: BranchedRun;
  readonly #store: BranchStore;
  #count: number;
  #state: ConversationState;

  /** @param earlier what an earlier process told */
  constructor(
    owner: string,
    run: BranchedRun,
    {
      store,
      abort,
      earlier = [],
    }: { store: BranchStore; abort: AbortController; earlier?: readonly NumberedEvent[] },
  ) {
    super({
      id: run.id,
      owner,
      abort,
      numberOf: (event) => event.number,
      keep: (events) => store.appendEvents(run.id, events),
      earlier,
    });
    this.run = run;
    this.#store = store;
    this.#count = earlier.at(-1)?.number ?? 0;
    this.#state = stateOf(earlier);
  }

  /** How many events were told. */
  get count(): number {
    return this.#count;
  }

  /** The message so far. */
  get state(): ConversationState {
    return this.#state;
  }

  /** @param tokens see `NumberedEvent` */
  async tell(event: ConversationEvent, tokens: readonly number[] = []): Promise<void> {
    await this.publish({ ...this.#number(event), tokens });
  }

  /** The last event. Its readers then find the message that `bodyOf` makes of the last state. */
  async end(
    event: ConversationEvent,
    bodyOf: (state: ConversationState) => AnswerBody,
  ): Promise<void> {
    const last = this.#number(event);
    const message = { id: this.run.messageId, body: bodyOf(this.#state) };
    try {
      await this.#store.endRun(this.run.id, message, [last]);
    } finally {
      this.finish(last);
    }
  }

  #number(event: ConversationEvent): NumberedEvent {
    this.#state = applyEvent(this.#state, event);
    this.#count += 1;
    return { number: this.#count, body: JSON.stringify(event) };
  }
}

export class Runner {
  readonly #store: BranchStore;
  readonly live = new LiveRuns<ConversationRun>();

  constructor(store: BranchStore) {
    this.#store = store;
  }

  /** The runs of a conversation, the newest last. */
  runsOf(conversationId: string): ConversationRun[] {
    return this.live.where(({ run }) => run.conversationId === conversationId);
  }

  /** Resolves when all runs of a conversation have ended. */
  async cancelAll(conversationId: string, reason: FermataError): Promise<void> {
    await this.live.cancel(this.runsOf(conversationId), reason);
  }

  async start(
    start: RunStart,
    context: RunnerContext,
  ): Promise<{ run: BranchedRun; userMessageId: string }> {
    const { owner, conversation } = start;
    const target = resolveTarget(start.settings.model, context);
    const plan = planRun(start, target, context.warnings.warn);
    const { controller, end: endWork } = context.active.begin();
    const { signal } = controller;
    const { question } = plan;
    const run = {
      id: newId("run"),
      conversationId: conversation.id,
      messageId: newId("msg"),
    };
    const { model } = start.settings;
    const fingerprint = modelFingerprint(context.services);
    const request = { chat: plan.chat, model, tools: plan.tools, fingerprint };
    const held = new HeldRounds(this.#store, { id: run.id, abort: controller }, request);
    const preparation = new Preparation();
    const work = new BegunWork<RunEvent>((sink) =>
      runEvents(
        { ...plan.chat, signal, owner, onTokens: held.drawn.draw },
        plan.mode,
        {
          ...context,
          preparation,
          answer: { ...context.answer, id: run.id },
          target,
          asksPerson: context.config.asksPerson,
          isWatched: true,
          journal: held,
        },
        sink,
      ),
    );
    try {
      await preparation.settle(work.first, patienceMs);
      const now = Date.now();
      const answer: Message = {
        id: run.messageId,
        parentId: question.message.id,
        createdAt: now,
        runId: run.id,
        body: newAnswer,
      };
      const asked = question.isNew ? [{ ...question.message, createdAt: now }] : [];
      const title = conversation.title === "" ? titleOf(question.body) : undefined;
      const change = { title, leafId: answer.id };
      await this.#store.beginRun(owner, { ...run, request }, [...asked, answer], change);
      const live = new ConversationRun(owner, run, { store: this.#store, abort: controller });
      this.live.add(live);
      const course = { mapper: new RunMapper(), transcript: new Transcript(), held, signal };
      const following = follow(live, work, context, course).finally(endWork);
      context.lease?.until(following);
      return { run, userMessageId: question.message.id };
    } catch (error) {
      controller.abort(error);
      await work.abandon(error);
      endWork();
      throw error;
    }
  }

  /** Goes on with a run of an earlier process. @throws FermataError: it cannot go on */
  async goOn(
    interruptedRun: InterruptedRun,
    context: RunnerContext,
    controller: AbortController,
  ): Promise<ConversationRun> {
    const store = this.#store;
    const { id, owner, conversationId, messageId, events } = interruptedRun;
    const resumption = resumptionOf(interruptedRun, modelFingerprint(context.services));
    const { request, round, written, isWritten } = resumption;
    // What a round comes to behind its calls is counted once the model goes on.
    if (isWritten) await store.countResume(id);
    const { signal } = controller;
    const held = new HeldRounds(store, { id, abort: controller }, request, resumption);
    const count = async (): Promise<void> => {
      if (!isWritten) await store.countResume(id);
    };
    const target = resolveTarget(request.model, context, (chat) =>
      round === null ? chat : new HeldChat(chat, { ...round, written }, count),
    );
    const live = new ConversationRun(
      owner,
      { id, conversationId, messageId },
      { store, abort: controller, earlier: events },
    );
    const { state } = resumption;
    const work = new BegunWork<RunEvent>(async (sink) => {
      await context.services.tools?.missing?.();
      const mode = modeOf(request.tools, target.tools);
      const { asksPerson } = context.config;
      const answer = { ...context.answer, id };
      const running = { ...context, answer, target, asksPerson, isWatched: true, journal: held };
      const begun = round === null ? { written } : {};
      const conversation = { ...request.chat, ...begun, signal, owner, onTokens: held.drawn.draw };
      await runEvents(conversation, mode, running, sink);
    });
    this.live.add(live);
    const startedAt = performance.now() - (state.timeline.at(-1)?.at_ms ?? 0);
    const earlier = new EarlierEvents(resumption);
    const course = {
      mapper: RunMapper.resumed(resumption, earlier.ids),
      transcript: new Transcript(round ?? undefined),
      held,
      signal,
      earlier,
      isHeld: round !== null,
      onLeft: async () => {
        if (isWritten) await store.countResume(id, -1);
      },
    };
    void follow(live, work, { ...context, startedAt }, course);
    return live;
  }
}

/** What a run is told and kept by. */
interface Course {
  mapper: RunMapper;
  transcript: Transcript;
  held: HeldRounds;
  signal: AbortSignal;
  /** What an earlier process told of the rounds that this one begins with. */
  earlier?: EarlierEvents;
  /** The first of them is held. */
  isHeld?: boolean;
  /** Called when the process closes and leaves it to the next one. */
  onLeft?: () => Promise<void>;
}

/** Never rejects. */
async function follow(
  live: ConversationRun,
  work: BegunWork<RunEvent>,
  context: RunnerContext,
  { mapper, transcript, held, signal, earlier, isHeld = false, onLeft = async () => {} }: Course,
): Promise<void> {
  let finish: Finish | null = null;
  let end: Omit<EndDetail, "type">;
  let isHoldTold = isHeld;
  const isLeftToNext = (): boolean =>
    signal.reason === takenOver || (isClosing(signal.reason) && held.outlivesProcess);
  try {
    if (earlier === undefined) await live.tell(mapper.begin());
    await work.deliver(async (event) => {
      if (event.type === "finish") finish = event;
      // How its calls end is told by the process that goes on.
      if (isLeftToNext()) return;
      if (event.type === "hold" && isHoldTold) return void (isHoldTold = false);
      transcript.add(event);
      if (event.type === "hold") await keepHold(event, live, { mapper, transcript, held });
      else if (isOfModel(event)) held.leave();
      const news = earlier === undefined ? event : earlier.newPart(event);
      const told = news && mapper.map(news, performance.now() - context.startedAt);
      if (told !== null) await live.tell(told, held.drawn.take(isOfModel(event)));
    });
    if (signal.reason === takenOver) return live.finish();
    end = endOf(finish);
  } catch (error) {
    await work.abandon(error);
    // The next process goes on with it, or another one does already.
    if (error === takenOver || isLeftToNext()) {
      if (isClosing(signal.reason) && signal.reason !== takenOver) await onLeft().catch(() => {});
      return live.finish();
    }
    const failure = toFermataError(error);
    if (failure.code !== "cancelled") logError(failure, context);
    end = endOfFailure(failure);
  }
  try {
    await live.end(mapper.end(end), (state) => answerBody(state, transcript.messages()));
  } catch (error) {
    logError(toFermataError(error), context);
  }
}

async function keepHold(
  { calls, turn: heldTurn }: Extract<ChatEvent, { type: "hold" }>,
  live: ConversationRun,
  { mapper, transcript, held }: Pick<Course, "mapper" | "transcript" | "held">,
): Promise<void> {
  if (calls.length === 0) return held.leaveForGood();
  await held.hold({
    messages: transcript.heldMessages,
    calls,
    heldTurn,
    ids: Object.fromEntries(calls.map(({ id }) => [id, mapper.idOf(id)])),
    told: live.count,
  });
}

function isClosing(reason: unknown): boolean {
  return reason instanceof FermataError && reason.code === "engine_closed";
}

function endOf(finish: Finish | null): Omit<EndDetail, "type"> {
  if (finish === null)
    return endOfFailure(new FermataError("internal_error", "The events ended without finish."));
  if (finish.reason === "content_filter")
    return { ...endOfFailure(filtered), usage: usageOf(finish.usage) };
  const isCut = finish.reason === "length" || finish.reason === "cancelled";
  const status = isCut ? (finish.reason as "length" | "cancelled") : "complete";
  return { status, usage: usageOf(finish.usage) };
}

const filtered = new FermataError(
  "endpoint_failed",
  "The content filter of the agent's endpoint stopped the answer.",
);

export function endOfFailure({ code, message }: FermataError): Omit<EndDetail, "type"> {
  return code === "cancelled"
    ? { status: "cancelled" }
    : { status: "failed", error: { code, message } };
}

function usageOf(usage: ChatUsage): RunUsage {
  const { prompt_tokens: prompt, completion_tokens: completion } = wireUsage(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: usage.cachedTokens,
    prefilled_tokens: usage.prefilledTokens,
  };
}
