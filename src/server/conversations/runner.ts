/** Begins runs and sees them to their end, whether somebody looks or not. */

import type { EndDetail, RunUsage } from "../../client/types.ts";
import type { ChatEvent, ChatUsage } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import type { BranchedRun, BranchStore } from "../../store/types.ts";
import type { RunEvent } from "../answer/run-event.ts";
import { newId } from "../answer/ids.ts";
import { wireUsage } from "../answer/usage.ts";
import type { OnceWarnings } from "../body/warnings.ts";
import type { ActiveRequests } from "../http/active-requests.ts";
import { logError, toFermataError } from "../http/errors.ts";
import { runEvents, type RunContext } from "../answer/answer.ts";
import { settledWithin } from "../http/settled-within.ts";
import { resolveTarget } from "../answer/target.ts";
import { LiveRun } from "./live-run.ts";
import { answerBody, type Message, newAnswer } from "./message-body.ts";
import { titleOf } from "./prompt.ts";
import { RunMapper } from "./run-mapper.ts";
import { planRun, type RunStart } from "./run-plan.ts";
import { Transcript } from "./transcript.ts";

export interface RunnerContext extends Omit<RunContext, "target"> {
  active: ActiveRequests;
  warnings: OnceWarnings;
}

/** What fails within this time gets its HTTP status, and leaves nothing behind. */
const patienceMs = 150;

type Finish = Extract<ChatEvent, { type: "finish" }>;
type Events = AsyncGenerator<RunEvent, void, void>;

export class Runner {
  readonly #store: BranchStore;
  /** The last begun is last. */
  readonly #live = new Map<string, LiveRun>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(store: BranchStore) {
    this.#store = store;
  }

  find(runId: string): LiveRun | null {
    return this.#live.get(runId) ?? null;
  }

  /** The one of a conversation that began last. */
  runOf(conversationId: string): LiveRun | null {
    const own = [...this.#live.values()].filter(
      (live) => live.run.conversationId === conversationId,
    );
    return own.at(-1) ?? null;
  }

  /** Resolves when all runs of a conversation have ended. */
  async cancelAll(conversationId: string, reason: string): Promise<void> {
    const all = [...this.#live.values()].filter(
      (live) => live.run.conversationId === conversationId,
    );
    for (const live of all) live.cancel(new FermataError("cancelled", reason));
    await Promise.all(all.map((live) => live.ended));
  }

  /** Two requests at once must not both find that nothing runs. */
  async oneByOne<Result>(conversationId: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#queues.get(conversationId) ?? Promise.resolve();
    const result = before.then(work, work);
    const settled = result.catch(() => {});
    this.#queues.set(conversationId, settled);
    try {
      return await result;
    } finally {
      if (this.#queues.get(conversationId) === settled) this.#queues.delete(conversationId);
    }
  }

  async start(
    start: RunStart,
    context: RunnerContext,
  ): Promise<{ run: BranchedRun; userMessageId: string }> {
    const { owner, conversation } = start;
    const target = resolveTarget(start.settings.model, context);
    const plan = planRun(start, target);
    const { controller, end: endWork } = context.active.begin();
    const { signal } = controller;
    const events = runEvents({ ...plan.chat, signal, owner }, plan.mode, { ...context, target });
    try {
      const first = events.next();
      await settledWithin(first, patienceMs);

      const run = {
        id: newId("run"),
        conversationId: conversation.id,
        messageId: newId("msg"),
      };
      const now = Date.now();
      const isNew = plan.question.isNew;
      const question: Message = { ...plan.question.message, createdAt: now };
      const answer: Message = {
        id: run.messageId,
        parentId: question.id,
        createdAt: now,
        runId: run.id,
        body: newAnswer,
      };
      const title = conversation.title === "" ? titleOf(plan.question.body) : undefined;
      const messages = isNew ? [question, answer] : [answer];
      const change = { title, leafId: answer.id };
      await this.#store.beginRun(owner, run, messages, change);
      const live = new LiveRun(run, this.#store, controller);
      this.#live.set(run.id, live);
      void this.#follow(live, { events, first }, context).finally(endWork);
      return { run, userMessageId: question.id };
    } catch (error) {
      controller.abort(error);
      await events.return();
      endWork();
      throw error;
    }
  }

  /** Never rejects. */
  async #follow(
    live: LiveRun,
    { events, first }: { events: Events; first: ReturnType<Events["next"]> },
    context: RunnerContext,
  ): Promise<void> {
    const mapper = new RunMapper();
    const transcript = new Transcript();
    let end: Omit<EndDetail, "type">;
    try {
      await live.publish(mapper.begin());
      let finish: Finish | null = null;
      for (let next = await first; next.done !== true; next = await events.next()) {
        const event = next.value;
        if (event.type === "finish") finish = event;
        transcript.add(event);
        const told = mapper.map(event, performance.now() - context.startedAt);
        if (told !== null) await live.publish(told);
      }
      end = endOf(finish);
    } catch (error) {
      const failure = toFermataError(error);
      if (failure.code !== "cancelled") logError(failure, context);
      end = endOfFailure(failure);
    }
    try {
      await events.return();
      await live.finish(mapper.end(end), (state) => answerBody(state, transcript.messages()));
    } catch (error) {
      logError(toFermataError(error), context);
    } finally {
      this.#live.delete(live.run.id);
    }
  }
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

function endOfFailure({ code, message }: FermataError): Omit<EndDetail, "type"> {
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
