/** The traces of the last answers, once a second while somebody looks at them. */

import { getTraces } from "../api/endpoints.ts";
import { messageOf } from "../api/request.ts";
import type { Trace } from "../api/wire.ts";
import { noteFailure } from "./session.ts";
import { Store } from "./store.ts";

export interface TracesState {
  /** The newest first; null: not read yet. */
  traces: Trace[] | null;
  error: string | null;
  /** `performance.now()` when they were read. */
  readAt: number;
}

export const tracesState = new Store<TracesState>({ traces: null, error: null, readAt: 0 });

const periodMs = 1000;

/** @returns what ends it */
export function watchTraces(): () => void {
  let isOver = false;
  const read = async (): Promise<void> => {
    if (document.visibilityState === "visible") await readOnce();
    if (!isOver) setTimeout(() => void read(), periodMs);
  };
  void read();
  return () => (isOver = true);
}

async function readOnce(): Promise<void> {
  try {
    const { traces } = await getTraces();
    tracesState.set({ traces, error: null, readAt: performance.now() });
  } catch (error) {
    const known = noteFailure(error);
    tracesState.update((state) => ({ ...state, error: known ? null : messageOf(error) }));
  }
}
