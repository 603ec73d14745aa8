/** The engine's state, twice a second while the page is visible. */

import { watchEvents } from "../api/watch-events.ts";
import type { EngineState } from "../api/wire.ts";
import { noteAnswer, noteFailure, session } from "./session.ts";
import { Store } from "./store.ts";

export const engineState = new Store<EngineState | null>(null);

let reading: AbortController | null = null;

export function watchEngine(): void {
  const start = (): void => {
    const wanted = document.visibilityState === "visible" && session.get() !== "locked";
    if (!wanted) {
      reading?.abort();
      reading = null;
    } else if (reading === null) {
      reading = new AbortController();
      void read(reading.signal);
    }
  };
  document.addEventListener("visibilitychange", start);
  session.subscribe(start);
  start();
}

async function read(signal: AbortSignal): Promise<void> {
  try {
    await watchEvents("/api/engine/stream", {
      signal,
      onEvent: (data) => engineState.set(JSON.parse(data) as EngineState),
      onConnection: (connected) => {
        if (connected) noteAnswer();
        else {
          engineState.set(null);
          session.set("offline");
        }
      },
    });
  } catch (error) {
    engineState.set(null);
    noteFailure(error);
  }
}
