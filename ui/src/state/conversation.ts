/**
 * The open conversation: its messages, and the answers that stream into it. Events are collected
 * until the next frame, so the page renders once a frame however many streams run.
 */

import { readConversation } from "../../../src/client/read-conversation.ts";
import {
  cancelRun,
  type ConversationChange,
  getConversation,
  streamPath,
} from "../api/endpoints.ts";
import { ApiError, messageOf } from "../api/request.ts";
import type { Conversation, ConversationEvent, Message } from "../api/wire.ts";
import { applyEvent, emptyTurn, stateOfMessage, statusOf, type Turn } from "../turn/turn.ts";
import { refreshList } from "./conversation-list.ts";
import { noteAnswer, noteFailure } from "./session.ts";
import { Store } from "./store.ts";
import { tellTabs } from "./tabs.ts";

export interface OpenConversation {
  id: string;
  status: "loading" | "ready" | "missing" | "failed";
  error: string | null;
  conversation: Conversation | null;
  /** Part of `conversation` that the server does not have yet. */
  unsent: ConversationChange;
  /** By message. */
  turns: Readonly<Record<string, Turn>>;
  /** The stream of a run was lost and is reconnecting. */
  isReconnecting: boolean;
}

export const openState = new Store<OpenConversation | null>(null);

/** Null: none is open; the next message begins one. */
export function openIdOf(state: OpenConversation | null): string | null {
  return state?.id ?? null;
}

/** The conversation itself. It does not change while answers stream. */
export function openConversationOf(state: OpenConversation | null): Conversation | null {
  return state?.conversation ?? null;
}

interface LiveRun {
  messageId: string;
  stop: AbortController;
  waiting: ConversationEvent[];
  turn: Turn;
  /** When its first event arrived, by `performance.now()`. */
  since: number;
}

const runs = new Map<string, LiveRun>();
let frame = 0;
/** Readings are counted: an answer that comes after the answer to a later one is old. */
let lastAsked = 0;
let lastShown = 0;

/** Shows this conversation; null shows none. */
export async function show(id: string | null): Promise<void> {
  if (openState.get()?.id === id) return;
  stopReading();
  openState.set(id === null ? null : loading(id));
  if (id !== null) await refresh();
}

/** Shows a new conversation after its first message. */
export function adopt(conversation: Conversation): void {
  stopReading();
  openState.set({ ...loading(conversation.id), status: "ready", conversation });
}

/** Reads the conversation again and follows its active runs. */
export async function refresh(): Promise<void> {
  const id = openState.get()?.id;
  if (id === undefined) return;
  const asked = ++lastAsked;
  try {
    const conversation = await getConversation(id);
    noteAnswer();
    if (asked < lastShown) return;
    lastShown = asked;
    change(id, (state) => ({
      ...state,
      status: "ready",
      error: null,
      conversation: { ...conversation, ...state.unsent },
      turns: turnsOf(conversation, state.turns),
    }));
    const turns = openState.get()?.turns ?? {};
    for (const { id: messageId, run_id: runId } of conversation.messages) {
      const turn = turns[messageId];
      if (turn !== undefined && statusOf(turn) === "running" && runId !== null) {
        follow(id, runId, messageId);
      }
    }
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404;
    const known = noteFailure(error);
    change(id, (state) => ({
      ...state,
      status: isMissing ? "missing" : state.conversation === null ? "failed" : state.status,
      error: known ? null : messageOf(error),
    }));
  }
}

/** Shows a change before the server has it; null: the server has it, or refused it. */
export function assume(id: string, unsent: ConversationChange | null): void {
  change(id, (state) => ({
    ...state,
    conversation: state.conversation && { ...state.conversation, ...unsent },
    unsent: unsent === null ? {} : { ...state.unsent, ...unsent },
  }));
}

/** Milliseconds since this page saw the answer begin. */
export function runningMs(messageId: string): number | null {
  for (const run of runs.values()) {
    if (run.messageId === messageId) return performance.now() - run.since;
  }
  return null;
}

export async function stop(runId: string): Promise<void> {
  const id = openState.get()?.id;
  if (id !== undefined) await cancelRun(id, runId);
}

function follow(id: string, runId: string, messageId: string): void {
  if (runs.has(runId)) return;
  const stop = new AbortController();
  // The stream repeats the answer from its beginning.
  const run: LiveRun = {
    messageId,
    stop,
    waiting: [],
    turn: emptyTurn,
    since: performance.now(),
  };
  runs.set(runId, run);
  const end = async (): Promise<void> => {
    if (stop.signal.aborted) return;
    drawFrame();
    runs.delete(runId);
    await Promise.all([refresh(), refreshList()]);
  };
  void read(id, runId, run).catch(noteFailure).then(end);
}

/** Follows the run to its end, over several connections if needed. */
async function read(id: string, runId: string, run: LiveRun): Promise<void> {
  const events = readConversation(streamPath(id, runId), {
    signal: run.stop.signal,
    maxAttempts: Number.POSITIVE_INFINITY,
    onConnection: ({ type }) => {
      const isReconnecting = type === "lost";
      change(id, (state) => ({ ...state, isReconnecting }));
    },
  });
  for await (const { event } of events) {
    run.waiting.push(event);
    frame ||= requestAnimationFrame(drawFrame);
  }
}

function drawFrame(): void {
  cancelAnimationFrame(frame);
  frame = 0;
  const state = openState.get();
  if (state === null) return;
  const turns = { ...state.turns };
  for (const run of runs.values()) {
    if (run.waiting.length === 0) continue;
    run.turn = run.waiting.reduce(applyEvent, run.turn);
    run.waiting = [];
    turns[run.messageId] = run.turn;
  }
  openState.set({ ...state, turns });
}

/** Keeps streaming answers, which are newer than the data just read. */
function turnsOf(conversation: Conversation, before: OpenConversation["turns"]) {
  const live = new Set([...runs.values()].map(({ messageId }) => messageId));
  const turns: Record<string, Turn> = {};
  for (const message of conversation.messages) {
    if (message.role !== "assistant") continue;
    const known = before[message.id];
    const keepsKnown = known !== undefined && (live.has(message.id) || isSame(known, message));
    turns[message.id] = keepsKnown ? known : stateOfMessage(message);
  }
  return turns;
}

/** An answer that was followed to its end is not read again, nor by data from before its end. */
function isSame(turn: Turn, { status }: Pick<Message, "status">): boolean {
  const known = statusOf(turn);
  return known !== "running" && (known === status || status === "running");
}

function loading(id: string): OpenConversation {
  return {
    id,
    status: "loading",
    error: null,
    conversation: null,
    unsent: {},
    turns: {},
    isReconnecting: false,
  };
}

function change(id: string, update: (state: OpenConversation) => OpenConversation): void {
  openState.update((state) => (state?.id === id ? update(state) : state));
}

function stopReading(): void {
  for (const { stop } of runs.values()) stop.abort();
  runs.clear();
}

/** Called for every change of a conversation that is made in this tab; another one may be open by then. */
export async function changed(id: string): Promise<void> {
  tellTabs(id);
  await Promise.all([refresh(), refreshList()]);
}
