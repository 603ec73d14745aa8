/** Keeps, lists and continues the branched conversations of one server. */

import type {
  Conversation,
  ConversationEvent,
  ConversationList,
  ConversationSummary,
  RunStarted,
} from "../../client/types.ts";
import { FermataError } from "../../errors.ts";
import type {
  BranchedConversation,
  BranchStore,
  NumberedEvent,
  SharedStore,
} from "../../store/types.ts";
import { TurnsOfEach } from "../../turns.ts";
import { fieldError } from "../body/field.ts";
import { newId } from "../answer/ids.ts";
import { cancelElsewhere, followStored } from "../answer/shared-runs.ts";
import { withModel } from "../answer/model-use.ts";
import { stateOf } from "./held-round.ts";
import { InterruptedRuns } from "./interrupted-runs.ts";
import { answerBody, type Message, type MessageBody, wireMessage } from "./message-body.ts";
import type { ConversationPatch, ConversationSettings } from "./fields.ts";
import type { RunRequest } from "./run-request.ts";
import { type RunnerContext, Runner } from "./runner.ts";

export class ConversationService {
  readonly #store: BranchStore;
  readonly #modelId: string;
  readonly #replica: string | undefined;
  readonly #runner: Runner;
  /** Two requests at the same time must not both find that nothing runs, nor undo each other's settings. */
  readonly #turns = new TurnsOfEach();
  readonly #shared: SharedStore | null;
  /** Of runs that begin once their model is in memory. */
  readonly #starting = new Set<{ conversationId: string; abort: AbortController }>();
  readonly #interrupted: InterruptedRuns;

  /** @param replica whose name the conversations' ids have @param shared other processes have the same store */
  constructor(
    store: BranchStore,
    modelId: string,
    { replica, shared = null }: { replica?: string | undefined; shared?: SharedStore | null } = {},
  ) {
    this.#store = store;
    this.#replica = replica;
    this.#shared = shared;
    this.#modelId = modelId;
    this.#runner = new Runner(store);
    this.#interrupted = new InterruptedRuns(store, this.#runner);
  }

  /** Goes on with the runs that another process left waiting, and ends the others. */
  async adopt(context: RunnerContext): Promise<void> {
    await this.#interrupted.adopt(context);
  }

  async create(owner: string, { title = "", settings }: ConversationPatch): Promise<Conversation> {
    const now = Date.now();
    const conversation = {
      id: newId("conv", this.#replica),
      title,
      createdAt: now,
      updatedAt: now,
      leafId: null,
      settings: { ...settings },
    };
    await this.#store.createConversation(owner, conversation);
    return this.#wire(conversation, []);
  }

  async list(
    owner: string,
    { limit, before }: { limit: number; before: string | null },
  ): Promise<ConversationList> {
    if (before !== null && (await this.#store.conversation(owner, before)) === null)
      throw fieldError(
        "invalid_value",
        "before",
        "names no conversation",
        "Send an id of the list",
      );
    const found = await this.#store.conversations(owner, { limit: limit + 1, before });
    return {
      conversations: found.slice(0, limit).map((conversation) => this.#summary(conversation)),
      has_more: found.length > limit,
    };
  }

  /** @throws FermataError not_found, as all methods with an id */
  async get(owner: string, id: string): Promise<Conversation> {
    const messages = await this.#messages(owner, id);
    return this.#wire(await this.#find(owner, id), messages);
  }

  /** Settings that are not in `patch` stay, also those of a change at the same time. */
  async change(owner: string, id: string, patch: ConversationPatch): Promise<Conversation> {
    const { title, leafId, settings } = patch;
    // Not behind a run that starts: its model may take minutes to load.
    return await this.#turns.take(`settings of ${id}`, async () => {
      const conversation = await this.#find(owner, id);
      if (leafId !== undefined) checkLeaf(leafId, await this.#messages(owner, id));
      const change = { title, leafId, settings: { ...conversation.settings, ...settings } };
      await this.#store.changeConversation(owner, id, change, Date.now());
      return await this.get(owner, id);
    });
  }

  /** Cancels its runs first. */
  async delete(owner: string, id: string): Promise<void> {
    await this.#find(owner, id);
    const reason = new FermataError("cancelled", "The conversation was deleted.");
    for (const { conversationId, abort } of this.#starting)
      if (conversationId === id) abort.abort(reason);
    // A run that is starting must be in the store first, so that it is found.
    await this.#turns.take(id, async () => {
      await this.#runner.cancelAll(id, reason);
      await this.#cancelOthers(owner, id, reason);
      await this.#store.deleteConversation(owner, id);
    });
  }

  /** The runs of a conversation that are expected, or that other processes work on. */
  async #cancelOthers(owner: string, id: string, reason: FermataError): Promise<void> {
    const messages = (await this.#store.messages(owner, id)) as Message[];
    const running = messages.filter(({ runId, body }) => runId !== null && isRunning(body));
    await Promise.all(
      running.map(async ({ runId }) => {
        const wasHere = await this.#runner.live.end(owner, runId!, reason);
        if (!wasHere && this.#shared !== null) await cancelElsewhere(runId!, this.#shared);
      }),
    );
  }

  /**
   * A client that leaves does not give the run up, whether it has begun or waits for its model.
   * @throws FermataError also queue_full and context_length_exceeded, which the engine throws at once
   */
  async startRun(
    owner: string,
    id: string,
    request: RunRequest,
    context: RunnerContext,
  ): Promise<RunStarted> {
    const { controller: abort, end } = context.active.begin();
    const starting = { conversationId: id, abort };
    this.#starting.add(starting);
    try {
      return await this.#turns.take(id, () =>
        this.#start(owner, id, request, { ...context, signal: abort.signal }),
      );
    } finally {
      this.#starting.delete(starting);
      end();
    }
  }

  async #start(
    owner: string,
    id: string,
    request: RunRequest,
    { signal, ...context }: RunnerContext & { signal: AbortSignal },
  ): Promise<RunStarted> {
    const conversation = await this.#find(owner, id);
    const messages = await this.#messages(owner, id);
    const settings = { ...settingsOf(conversation), ...request.settings };
    const start = { owner, conversation, messages, settings, request };
    const { run, userMessageId } = await withModel(settings.model, context, { signal }, (own) =>
      this.#runner.start(start, own),
    );
    return {
      run_id: run.id,
      user_message_id: userMessageId,
      message_id: run.messageId,
      stream_url: `/api/conversations/${id}/stream?run_id=${run.id}`,
    };
  }

  /** A run that has ended stays as it is. */
  async cancelRun(owner: string, id: string, runId: string): Promise<void> {
    await this.#findRun(owner, id, runId);
    const isHere =
      this.#runner.live.find(owner, runId) ?? this.#runner.live.expected.has(owner, runId);
    if (!isHere) await this.#shared?.cancel(runId);
    void this.#runner.live.end(
      owner,
      runId,
      new FermataError("cancelled", "The run was cancelled."),
    );
  }

  /** Of a run that another process asks for. */
  async cancelHere(runId: string, reason: FermataError): Promise<void> {
    await this.#runner.live.cancelById(runId, reason);
  }

  /**
   * The run's events with numbers above `after`; null: they no longer exist. `runId` null: the current run.
   * @param viewer aborted when nobody reads any more
   */
  async events(
    owner: string,
    id: string,
    { runId, after, withDetails }: { runId: string | null; after: number; withDetails: boolean },
    viewer: AbortSignal,
  ): Promise<AsyncGenerator<NumberedEvent, void, void> | null> {
    const wanted = runId ?? (await this.#currentRun(owner, id));
    await this.#findRun(owner, id, wanted);
    const live = this.#runner.live.find(owner, wanted);
    if (live !== null) return live.read(after, viewer);
    await this.#interrupted.take();
    const again = { runId: wanted, after, withDetails };
    if (this.#runner.live.expected.has(owner, wanted))
      return this.#runner.live.later(wanted, viewer, () => this.events(owner, id, again, viewer));
    const taken = this.#runner.live.find(owner, wanted);
    if (taken !== null) return taken.read(after, viewer);
    const read = (from: number): Promise<NumberedEvent[]> => this.#store.runEvents(wanted, from);
    if (this.#shared !== null && (await this.#shared.isAtWork(wanted))) {
      const numberOf = ({ number }: NumberedEvent): number => number;
      return followStored(wanted, this.#shared, { read, numberOf, after, viewer });
    }
    const events = await read(after);
    const isOver = withDetails
      ? events.length === 0
      : events.every(({ body }) => plainEvent(body) === null);
    return isOver ? null : replayed(events);
  }

  async #messages(owner: string, id: string): Promise<Message[]> {
    const messages = (await this.#store.messages(owner, id)) as Message[];
    const isOrphan = ({ runId, body }: Message): boolean =>
      runId !== null && isRunning(body) && this.#runner.live.find(owner, runId) === null;
    if (!messages.some(isOrphan)) return messages.map((message) => this.#current(owner, message));
    await this.#interrupted.take();
    const again = (await this.#store.messages(owner, id)) as Message[];
    return await Promise.all(
      again.map(async (message) =>
        isOrphan(message) ? await this.#soFar(message) : this.#current(owner, message),
      ),
    );
  }

  /** The message that another process writes, as far as its events tell. */
  async #soFar(message: Message): Promise<Message> {
    const events = await this.#store.runEvents(message.runId!, 0);
    return { ...message, body: answerBody(stateOf(events), []) };
  }

  /** The current message, if a run of this process writes it. */
  #current(owner: string, message: Message): Message {
    const live = message.runId === null ? null : this.#runner.live.find(owner, message.runId);
    if (live === null || message.body.role === "user") return message;
    return { ...message, body: answerBody(live.state, []) };
  }

  async #currentRun(owner: string, id: string): Promise<string> {
    const { leafId } = await this.#find(owner, id);
    const messages = await this.#store.messages(owner, id);
    const leaf = messages.find((message) => message.id === leafId);
    const current =
      this.#runner.runsOf(id).at(-1)?.id ?? this.#runner.live.expected.inConversation(id);
    const runId = current ?? leaf?.runId;
    if (runId) return runId;
    throw new FermataError("not_found", "The conversation has no run yet.", { param: "run_id" });
  }

  async #find(owner: string, id: string): Promise<BranchedConversation> {
    const found = await this.#store.conversation(owner, id);
    if (found !== null) return found;
    const message = `There is no conversation ${id.slice(0, 100)}.`;
    throw new FermataError("not_found", message, { param: "id" });
  }

  async #findRun(owner: string, id: string, runId: string): Promise<void> {
    await this.#find(owner, id);
    if ((await this.#store.run(owner, id, runId)) !== null) return;
    const message = `The conversation has no run ${runId.slice(0, 100)}.`;
    throw new FermataError("not_found", message, { param: "run_id" });
  }

  #summary(conversation: BranchedConversation): ConversationSummary {
    const { id, title, createdAt, updatedAt } = conversation;
    return {
      id,
      title,
      created_at: Math.floor(createdAt / 1000),
      updated_at: Math.floor(updatedAt / 1000),
      model: settingsOf(conversation).model ?? this.#modelId,
      run_id: this.#runner.runsOf(id).at(-1)?.id ?? this.#runner.live.expected.inConversation(id),
    };
  }

  #wire(conversation: BranchedConversation, messages: readonly Message[]): Conversation {
    const { tools, instructions, responseFormat } = settingsOf(conversation);
    return {
      ...this.#summary(conversation),
      tools,
      instructions,
      response_format: responseFormat,
      leaf_id: conversation.leafId,
      messages: messages.map(wireMessage),
    };
  }
}

function settingsOf({ settings }: BranchedConversation): ConversationSettings {
  return {
    model: null,
    tools: null,
    instructions: null,
    responseFormat: null,
    ...(settings as Partial<ConversationSettings>),
  };
}

/** The next message follows it. */
function checkLeaf(leafId: string, messages: readonly Message[]): void {
  const leaf = messages.find(({ id }) => id === leafId);
  if (leaf?.body.role === "assistant") return;
  const problem = leaf === undefined ? "names no message" : "is a user's message";
  throw fieldError("invalid_value", "leaf_id", problem, "Send an answer's id");
}

function isRunning(body: MessageBody): boolean {
  return body.role === "assistant" && body.status === "running";
}

async function* replayed(events: readonly NumberedEvent[]): AsyncGenerator<NumberedEvent> {
  yield* events;
}

/** The event without details. Null: it has nothing else. */
export function plainEvent(body: string): string | null {
  const { details: _details, ...plain } = JSON.parse(body) as ConversationEvent;
  const { message, citations, tool_calls: calls } = plain;
  return message === "" && citations.length === 0 && calls.length === 0
    ? null
    : JSON.stringify(plain);
}
