/** Branched conversations of a server without a store: they are gone when it ends. */

import type {
  BranchedConversation,
  BranchedMessage,
  BranchedRun,
  BranchStore,
  ConversationChange,
  InterruptedRun,
  NumberedEvent,
} from "../types.ts";

interface Entry {
  owner: string;
  conversation: BranchedConversation;
  messages: BranchedMessage[];
}

interface RunEntry {
  entry: Entry;
  run: BranchedRun;
  hasEnded: boolean;
  events: NumberedEvent[];
}

/** The one that was not changed for the longest time makes room. */
const maxConversations = 1000;

export class MemoryBranches implements BranchStore {
  /** The last changed is last. */
  readonly #entries = new Map<string, Entry>();
  readonly #runs = new Map<string, RunEntry>();

  async createConversation(owner: string, conversation: BranchedConversation): Promise<void> {
    this.#entries.set(conversation.id, { owner, conversation, messages: [] });
    if (this.#entries.size > maxConversations) this.#dropOldest();
  }

  async conversations(
    owner: string,
    { limit, before }: { limit: number; before: string | null },
  ): Promise<BranchedConversation[]> {
    const own = [...this.#entries.values()].filter((entry) => entry.owner === owner).reverse();
    const start = own.findIndex(({ conversation }) => conversation.id === before) + 1;
    if (before !== null && start === 0) return [];
    return own.slice(start, start + limit).map(({ conversation }) => conversation);
  }

  async conversation(owner: string, id: string): Promise<BranchedConversation | null> {
    return this.#find(owner, id)?.conversation ?? null;
  }

  async messages(owner: string, id: string): Promise<BranchedMessage[]> {
    return [...(this.#find(owner, id)?.messages ?? [])];
  }

  async changeConversation(
    owner: string,
    id: string,
    change: ConversationChange,
    updatedAt: number,
  ): Promise<boolean> {
    const entry = this.#find(owner, id);
    if (entry === null) return false;
    const given = Object.entries(change).filter(([, value]) => value !== undefined);
    entry.conversation = { ...entry.conversation, ...Object.fromEntries(given), updatedAt };
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return true;
  }

  async deleteConversation(owner: string, id: string): Promise<boolean> {
    const entry = this.#find(owner, id);
    if (entry !== null) this.#drop(entry);
    return entry !== null;
  }

  async beginRun(
    owner: string,
    run: BranchedRun,
    messages: readonly BranchedMessage[],
    change: ConversationChange,
  ): Promise<void> {
    const entry = this.#find(owner, run.conversationId);
    if (entry === null) return;
    entry.messages.push(...messages);
    this.#runs.set(run.id, { entry, run, hasEnded: false, events: [] });
    await this.changeConversation(owner, run.conversationId, change, messages.at(-1)!.createdAt);
  }

  async appendEvents(runId: string, events: readonly NumberedEvent[]): Promise<void> {
    this.#runs.get(runId)?.events.push(...events);
  }

  async endRun(
    runId: string,
    { id, body }: Pick<BranchedMessage, "id" | "body">,
    events: readonly NumberedEvent[],
  ): Promise<void> {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    const { entry } = run;
    run.events.push(...events);
    run.hasEnded = true;
    entry.messages = entry.messages.map((message) =>
      message.id === id ? { ...message, body } : message,
    );
  }

  async run(owner: string, conversationId: string, runId: string): Promise<BranchedRun | null> {
    const entry = this.#find(owner, conversationId);
    const found = this.#runs.get(runId);
    return found !== undefined && found.entry === entry ? found.run : null;
  }

  async runEvents(runId: string, after: number): Promise<NumberedEvent[]> {
    return this.#runs.get(runId)?.events.filter(({ number }) => number > after) ?? [];
  }

  /** They end with the process that had them in memory. */
  async takeInterrupted(): Promise<InterruptedRun[]> {
    return [];
  }

  #find(owner: string, id: string): Entry | null {
    const entry = this.#entries.get(id);
    return entry?.owner === owner ? entry : null;
  }

  #dropOldest(): void {
    const running = new Set(
      [...this.#runs.values()].filter(({ hasEnded }) => !hasEnded).map(({ entry }) => entry),
    );
    const oldest = [...this.#entries.values()].find((entry) => !running.has(entry));
    if (oldest !== undefined) this.#drop(oldest);
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.conversation.id);
    for (const [id, run] of this.#runs) if (run.entry === entry) this.#runs.delete(id);
  }
}
