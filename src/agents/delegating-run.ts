/** What a delegation knows of the run that it is a call of. Type-only. */

import type { ChatRequest } from "../chat/types.ts";
import type { Sink } from "../tools/event-stream.ts";
import type { ToolLoopOptions } from "../tools/tool-loop.ts";
import type { RunEvent, Tool } from "../tools/types.ts";
import type { Agent } from "./types.ts";

export type AgentRequest = Omit<ChatRequest, "tools" | "toolMode">;

/** What runs below a run take from it. */
export interface SharedByRuns {
  owner: string;
  client: string | undefined;
  cacheSalt: string | undefined;
  seed: number;
  watch: ChatRequest["watch"];
  loop: ToolLoopOptions;
}

export interface DelegatingRun {
  readonly agent: Agent;
  readonly tools: readonly Tool[];
  /** What ended it before its time, for people and models; null: nothing did. */
  readonly cut: string | null;
  /** @throws FermataError internal_error: the run has not begun */
  readonly shared: SharedByRuns;
  /** To be closed, if it is a run. @returns what hinders it, for the model */
  below(agent: Agent): DelegatingRun | string;
  answer(
    request: AgentRequest,
    tools: readonly Tool[],
    options: ToolLoopOptions,
    sink: Sink<RunEvent>,
  ): Promise<void>;
  close(): void;
}
