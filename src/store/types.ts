/** What is kept of responses and conversations, wherever it is kept. Type-only. */

/** An item as the Responses API writes it; the store reads its id, its type and what tells it apart. */
export interface StoredItem {
  id: string;
  type: string;
  [key: string]: unknown;
}

export interface StoredResponse {
  id: string;
  previousResponseId: string | null;
  conversationId: string | null;
  /** The response object without its output. */
  body: Record<string, unknown>;
}

/** The items of a response, in order. */
export interface ResponseItems {
  /** What came before this response's own input. */
  history: StoredItem[];
  input: StoredItem[];
  /** What was said, with the outputs of calls that were answered while it was said. */
  output: StoredItem[];
}

export interface NewResponse extends StoredResponse {
  owner: string;
  /** Unix seconds. */
  createdAt: number;
  input: readonly StoredItem[];
}

export interface StoredConversation {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  metadata: Record<string, string>;
}

/** A response that is written or waits for outputs of its client's calls, and what it takes to go on in another process. */
export interface ResponseHold {
  owner: string;
  id: string;
  /** The body that made it. */
  request: unknown;
  /** What its process knew of the last round with calls. */
  round: unknown;
  /** The number of the event after the last. */
  next: number;
  /** Of the wait for outputs; milliseconds since 1970. */
  deadline: number;
  /** How often other processes let the model go on behind this round. */
  resumes: number;
}

/** A call of a response, and what it has come to. */
export interface HeldCall {
  responseId: string;
  state: unknown;
}

/** Conversations of /v1/conversations, which are lists of items. */
export interface ConversationStore {
  create(owner: string, conversation: StoredConversation): Promise<void>;
  find(owner: string, id: string): Promise<StoredConversation | null>;
  setMetadata(owner: string, id: string, metadata: Record<string, string>): Promise<boolean>;
  delete(owner: string, id: string): Promise<boolean>;
  /** Null if there is no such conversation. */
  items(owner: string, id: string): Promise<StoredItem[] | null>;
  /** @returns the items as they are stored: one that is known is referred to */
  add(owner: string, id: string, items: readonly StoredItem[]): Promise<StoredItem[]>;
  /** Adds a response's input and output to its conversation. */
  addResponse(owner: string, responseId: string): Promise<void>;
  deleteItem(owner: string, id: string, itemId: string): Promise<boolean>;
}

/** Responses, their items, and what it takes to go on with them. */
export interface ResponseStore {
  /**
   * The history is that of the previous response, or what its conversation holds now. Input items that
   * are stored already, by id or by what they say, are referred to.
   */
  create(response: NewResponse): Promise<void>;
  /** Replaces the body and the output; the response is gone if it was deleted meanwhile. */
  update(
    owner: string,
    id: string,
    body: Record<string, unknown>,
    output: readonly StoredItem[],
  ): Promise<void>;
  find(owner: string, id: string): Promise<StoredResponse | null>;
  /** All of the owner's, the oldest first. */
  all(owner: string): Promise<StoredResponse[]>;
  /** Null if there is no such response. */
  items(owner: string, id: string): Promise<ResponseItems | null>;
  /** False if there was none. What only it referred to goes with it. */
  delete(owner: string, id: string): Promise<boolean>;
  item(owner: string, id: string): Promise<StoredItem | null>;
  /** A later version of a stored item, for all who refer to it. */
  updateItem(owner: string, item: StoredItem): Promise<void>;

  /** Kept until the response ends: it outlives the process. */
  setHold(hold: Omit<ResponseHold, "resumes">): Promise<void>;
  /** Another process lets the model go on. @param by -1: the process ended as it should */
  countResume(id: string, by?: 1 | -1): Promise<void>;
  /** Those whose process is gone; from now on they are this one's. */
  takeHolds(): Promise<ResponseHold[]>;

  /**
   * What a call of a response has come to, as long as the response is there. False: it was not written, because the call had come to
   * something else than `from`.
   */
  setHeldCall(responseId: string, callId: string, state: unknown, from?: unknown): Promise<boolean>;
  heldCall(owner: string, callId: string): Promise<HeldCall | null>;

  /** The next events of a response, for clients that read its stream later, all or none; numbers count from 0. */
  appendEvents(id: string, events: readonly NumberedEvent[]): Promise<void>;
  /** The tokens of its events from number `from` on, joined. */
  eventTokens(id: string, from: number): Promise<number[]>;
  /** Those numbered above `after`, as far as they came. Default: all. */
  events(owner: string, id: string, after?: number): Promise<unknown[]>;
}

/**
 * A conversation of /api/conversations: its messages are a tree, so that one may be edited or answered
 * anew. (Those of /v1/conversations are lists of items.)
 */
export interface BranchedConversation {
  id: string;
  /** Empty: none yet. */
  title: string;
  /** Milliseconds since 1970, as all times of branched conversations. */
  createdAt: number;
  updatedAt: number;
  /** The last message of the branch that is shown. */
  leafId: string | null;
  /** Whatever else there is to it. */
  settings: Record<string, unknown>;
}

export interface BranchedMessage {
  id: string;
  parentId: string | null;
  createdAt: number;
  /** The run that writes it, or wrote it. */
  runId: string | null;
  body: Record<string, unknown>;
}

export interface BranchedRun {
  id: string;
  conversationId: string;
  /** The message that it writes. */
  messageId: string;
}

/** An event of a run's stream, as JSON text. */
export interface NumberedEvent {
  /** Grows within a run. */
  number: number;
  body: string;
  /** What the model drew since the event before, this event's text included. Read by who goes on with the run only. */
  tokens?: readonly number[] | undefined;
}

/** What it takes to go on with a run in another process. Plain data. */
export interface RunHold {
  /** What began the run. */
  request: unknown;
  /** The last round that was held. Null: none was. */
  round: unknown;
  /** What its calls have come to, by their ids. */
  calls: Record<string, unknown>;
  /** How often other processes let the model go on behind this round. */
  resumes: number;
}

/** A run whose process is gone, and how far it came. */
export interface InterruptedRun extends BranchedRun {
  owner: string;
  events: NumberedEvent[];
  /** Null: it cannot be read, or an earlier Fermata began the run and none of its rounds was held. */
  hold: RunHold | null;
}

/** Changes of a conversation; what is undefined stays. */
export interface ConversationChange {
  title?: string | undefined;
  leafId?: string | null | undefined;
  settings?: Record<string, unknown> | undefined;
}

/**
 * Branched conversations, their messages and their runs. An owner never sees what another one stored.
 * Events are kept before they go out, so that a viewer never knows more than the store.
 */
export interface BranchStore {
  /** What it keeps outlives the process. */
  readonly lasts: boolean;
  createConversation(owner: string, conversation: BranchedConversation): Promise<void>;
  /** The last changed first, those that come after `before`. */
  conversations(
    owner: string,
    page: { limit: number; before: string | null },
  ): Promise<BranchedConversation[]>;
  conversation(owner: string, id: string): Promise<BranchedConversation | null>;
  /** The oldest first. */
  messages(owner: string, id: string): Promise<BranchedMessage[]>;
  /** False if there is none. */
  changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean>;
  /** With its messages and runs. False if there was none. */
  deleteConversation(owner: string, id: string): Promise<boolean>;

  /** Its messages, the run with what began it, and the new leaf, all or nothing. */
  beginRun(
    owner: string,
    run: BranchedRun & Pick<RunHold, "request">,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void>;
  appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void>;
  /** The round replaces the one before it, with its calls. `request` is kept from the first time on. */
  setRunHold(runId: string, hold: Pick<RunHold, "request" | "round">): Promise<void>;
  /** False: nothing was written, because the run is another process's by now, or was deleted. */
  setHeldCall(runId: string, callId: string, state: unknown): Promise<boolean>;
  /** Another process has taken it from this one. */
  isElsewhere(runId: string): Promise<boolean>;
  /** What a call of a run that goes on, or of a sub-agent below it, has come to. `past`: not asked about, or not any more. */
  callOfRun(owner: string, callId: string): Promise<"asked" | "past" | null>;
  /** @param by -1: the process ended as it should */
  countResume(runId: string, by?: 1 | -1): Promise<void>;
  /** The last events and what became of the message, all or nothing. Its hold is deleted. */
  endRun(
    runId: string,
    message: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void>;
  run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null>;
  /** Those numbered above `after`, without their tokens. */
  runEvents(runId: string, after: number): Promise<NumberedEvent[]>;
  /** Runs that nobody goes on with; each is given to one caller. */
  takeInterrupted(): Promise<InterruptedRun[]>;
}

/**
 * The last that is known of a call's questions. `asker`: the process that asks. `left`: nobody asks now, and whoever goes on with
 * its run asks again.
 */
export type QuestionState =
  /** `question`: as it was shown. */
  { at: "open"; asker: string; question: unknown } | { at: "decided" } | { at: "left" };

/** Resolves to the answer. Null, or undefined in the end: what it is about is not here. */
export type DeliveryListener = (about: string, body: unknown) => Promise<unknown> | null;

/** What processes that share a store know of each other's responses and runs. */
export interface SharedStore {
  /** Of this process among those that share the store. */
  readonly processId: string;
  /** A process works on it: this one, another, or one that is gone and whose work nobody has taken yet. */
  isAtWork(id: string): Promise<boolean>;
  /** Calls the listener when something of it may be new. @returns what ends it */
  follow(id: string, listener: () => void): () => void;
  /** Asks the process that works on it to cancel it. */
  cancel(id: string): Promise<void>;
  onCancel(listener: (id: string) => void): void;
  /** Shows the other processes a call of this one that waits for a person. */
  openQuestion(owner: string, callId: string, question: unknown): Promise<void>;
  /** @param end `dropped`: not asked by this process any more */
  closeQuestion(callId: string, end: "decided" | "dropped"): Promise<void>;
  /** What processes asked that are gone was decided. */
  settleQuestion(owner: string, callId: string): Promise<void>;
  /** Those of the other processes, as they were shown; the oldest first. */
  openQuestions(owner: string): Promise<unknown[]>;
  /** Null: no process has asked it, or its run has ended. */
  questionState(owner: string, callId: string): Promise<QuestionState | null>;
  /**
   * Hands something to the process that has what it is about, or takes it over soon, while somebody may.
   * @returns its answer; null: nobody took it
   */
  deliver(about: string, body: unknown, mayBeTaken: () => Promise<boolean>): Promise<unknown>;
  onDelivery(listener: DeliveryListener): void;
  /** Calls the listener when a process has left something: `takeInterrupted` and `takeHolds` give it. */
  onLeft(listener: () => void): void;
  /** Calls the listener when another process has taken something from this one, which it took for dead. It ends here. */
  onLost(listener: (id: string) => Promise<void>): void;
}

/**
 * A store with all that it keeps. Every item is stored once; responses and conversations refer to items in their order. An owner
 * never sees what another one stored. What a promise says is done survives the end of the process.
 */
export interface OpenStore {
  readonly responses: ResponseStore;
  readonly conversations: ConversationStore;
  readonly branches: BranchStore;
  /** Null: one process has the store for itself. */
  readonly shared: SharedStore | null;
  /** 32 random bytes, the same for all who open the store. */
  secret(name: string): Promise<Uint8Array>;
  close(): Promise<void>;
}
