/** The conversation that is open, and the run that is watched. */

import type {
  Conversation,
  ConversationMessage,
  ConversationState,
  RunStarted,
} from "../../client/index.ts";
import { FermataError } from "../../errors.ts";
import { abortionOf } from "../../waits.ts";
import type { ChatApi } from "./connect.ts";
import type { AnswerPrinter } from "./answer-printer.ts";
import { type Approver, decide } from "./decide.ts";

interface Settings {
  model: string | undefined;
  /** Undefined: as the server has it. Null: all. */
  tools: string[] | null | undefined;
  instructions: string | undefined;
}

export class OpenConversation {
  readonly #api: ChatApi;
  readonly #settings: Settings;
  #id: string | null = null;
  /** The end of a run that was given up before it had begun: until then no other of the conversation can begin. */
  #givenUp: Promise<void> = Promise.resolve();

  constructor(api: ChatApi, settings: Settings) {
    this.#api = api;
    this.#settings = { ...settings };
  }

  /** Null before the first message. */
  get id(): string | null {
    return this.#id;
  }

  /** The next message begins another one. */
  renew(): void {
    this.#id = null;
    this.#givenUp = Promise.resolve();
  }

  /** `last`, or an id or how it begins. @throws FermataError | StreamError */
  async open(wanted: string): Promise<Conversation> {
    const { conversations } = await this.#api.list(100);
    const known =
      wanted === "last" ? conversations[0] : conversations.find(({ id }) => id.startsWith(wanted));
    if (known === undefined && wanted === "last")
      throw new FermataError("not_found", "There is no conversation yet.");
    const conversation = await this.#api.conversation(known?.id ?? wanted);
    this.#id = conversation.id;
    this.#givenUp = Promise.resolve();
    return conversation;
  }

  /**
   * A run that is asked for begins once its model is in memory, which may take minutes.
   * @returns null: `stop` was aborted before; the run is cancelled when it begins, if this process is still there
   */
  async begin(ask: () => Promise<RunStarted>, stop: AbortSignal): Promise<RunStarted | null> {
    const begun = this.#givenUp.then(() => (stop.aborted ? null : ask()));
    const stopped = abortionOf(stop).then(() => null);
    const run = await Promise.race([begun, stopped]);
    if (run !== null) return run;
    // Another conversation may be open by then.
    const id = this.#id;
    this.#givenUp = begun
      .then((late) => late && this.#api.cancel((id ?? this.#id)!, late.run_id))
      .then(
        () => {},
        () => {},
      );
    return null;
  }

  async ask(message: string): Promise<RunStarted> {
    return this.#api.startRun(await this.#ensure(), { message });
  }

  /** @throws FermataError, if nothing was asked yet */
  async retry(): Promise<RunStarted> {
    const last = (await this.branch()).findLast(({ role }) => role === "assistant");
    if (last === undefined) throw nothingYet();
    return this.#api.startRun(this.#id!, { retry: last.id });
  }

  /** `message`, with the same files, in place of the question number `index`, from 0. @throws FermataError */
  async branchAt(index: number, message: string): Promise<RunStarted> {
    const question = (await this.questions())[index];
    if (question === undefined) {
      throw new FermataError("not_found", `There is no question ${index + 1}: /branch lists them.`);
    }
    const { id, parent_id } = question;
    return this.#api.startRun(this.#id!, { message, parent_id, files_of: id });
  }

  async questions(): Promise<ConversationMessage[]> {
    return (await this.branch()).filter(({ role }) => role === "user");
  }

  /** Messages of the branch that is shown, the oldest first. */
  async branch(): Promise<ConversationMessage[]> {
    return this.#id === null ? [] : branchOf(await this.#api.conversation(this.#id));
  }

  async set(change: Partial<Pick<Settings, "model" | "tools">>): Promise<void> {
    if (this.#id !== null) await this.#api.change(this.#id, change);
    Object.assign(this.#settings, change);
  }

  async #ensure(): Promise<string> {
    if (this.#id === null) {
      const conversation = await this.#api.create(this.#settings);
      this.#id = conversation.id;
    }
    return this.#id;
  }
}

export function branchOf({ messages, leaf_id: leaf }: Conversation): ConversationMessage[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const branch: ConversationMessage[] = [];
  let next = leaf === null ? undefined : byId.get(leaf);
  while (next !== undefined) {
    branch.unshift(next);
    next = next.parent_id === null ? undefined : byId.get(next.parent_id);
  }
  return branch;
}

function nothingYet(): FermataError {
  return new FermataError("not_found", "Nothing was asked yet.");
}

export interface Watcher extends Approver {
  printer: AnswerPrinter;
  /** Stops the run once it is aborted; its last events are still read. */
  stop: AbortSignal;
  /** Leaves at once: the run goes on without a viewer. */
  leave: AbortSignal;
}

/** Resolves to what the run came to. @throws StreamError, or the reason of `leave` */
export async function watchRun(
  api: ChatApi,
  conversationId: string,
  runId: string,
  { printer, stop, leave, ...approver }: Watcher,
): Promise<ConversationState> {
  const cancel = (): void => void api.cancel(conversationId, runId).catch(() => {});
  if (stop.aborted) cancel();
  stop.addEventListener("abort", cancel, { once: true });
  // A call that waits holds its own branch only: others are shown meanwhile.
  let questions = Promise.resolve();
  const over = new AbortController();
  try {
    for await (const { event } of api.events(conversationId, runId, leave)) {
      printer.apply(event);
      for (const detail of event.details ?? []) {
        if (detail.type !== "approval" || detail.state !== "asked") continue;
        questions = questions.then(async () => {
          const problem = await decide(api, detail, approver, over.signal);
          if (problem !== null) printer.warn(problem);
        });
      }
    }
  } finally {
    over.abort();
    stop.removeEventListener("abort", cancel);
  }
  printer.end();
  return printer.state;
}
