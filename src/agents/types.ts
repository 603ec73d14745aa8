/** Agents: a model with instructions, tools and limits. Type-only. */

import type { ChatRequest, PromptRequest } from "../chat/types.ts";
import type { Sampling } from "../engine/types.ts";
import type { Sink } from "../tools/event-stream.ts";
import type { ToolLoopChat, ToolLoopOptions } from "../tools/tool-loop.ts";
import type { RunEvent, Tool } from "../tools/types.ts";

/** Limits of one run of an agent. */
export interface AgentLimits {
  /** Rounds of tool calls. Undefined: the server's. */
  rounds?: number | undefined;
  /** Tool calls, delegations included. */
  calls: number;
  /** Tokens that it and the agents below it generate. Undefined: only the context limits them. */
  tokens?: number | undefined;
  /** Time of the run, with the agents below it. */
  seconds: number;
  /** Levels of agents below it. 0: it may not delegate. */
  depth: number;
}

/** Sampling that replaces the model's defaults. */
export type AgentSampling = Partial<
  Pick<
    Sampling,
    | "temperature"
    | "topP"
    | "topK"
    | "minP"
    | "repeatPenalty"
    | "frequencyPenalty"
    | "presencePenalty"
    | "seed"
  >
>;

/** The model of an agent: this server's, one of its own, or another server's. */
export interface AgentModel {
  chat: ToolLoopChat & {
    /** Tokens of the prompt. @throws FermataError unsupported_value: another server counts its own */
    countPromptTokens(request: PromptRequest, options?: { mayExceed?: boolean }): Promise<number>;
  };
  contextSize: number;
  vocabularySize: number;
  sampling: Omit<Sampling, "seed" | "logitBias" | "script">;
}

export interface Agent {
  readonly name: string;
  /** Shown to the agents that may delegate to it. */
  readonly description: string;
  readonly instructions: string;
  readonly limits: AgentLimits;
  readonly sampling: AgentSampling;
  readonly model: AgentModel;
  /** Names of the agents that it may delegate to. */
  readonly delegates: readonly string[];
  /** The tools of MCP servers that it may call now. */
  tools(): Tool[];
}

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

/** What a delegation knows of the run that it is a call of. */
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
