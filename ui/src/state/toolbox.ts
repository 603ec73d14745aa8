/** MCP servers with their tools, sub-agents and models. */

import { getTools } from "../api/endpoints.ts";
import { messageOf } from "../api/request.ts";
import type { Toolbox } from "../api/wire.ts";
import { noteFailure } from "./session.ts";
import { Store } from "./store.ts";

export interface ToolboxState {
  status: "loading" | "ready" | "failed";
  toolbox: Toolbox;
  error: string | null;
}

export const toolboxState = new Store<ToolboxState>({
  status: "loading",
  toolbox: { servers: [], agents: [], models: [] },
  error: null,
});

export async function refreshTools(): Promise<void> {
  try {
    toolboxState.set({ status: "ready", toolbox: await getTools(), error: null });
  } catch (error) {
    const known = noteFailure(error);
    toolboxState.update((state) => ({
      ...state,
      status: state.status === "ready" ? "ready" : "failed",
      error: known ? null : messageOf(error),
    }));
  }
}
