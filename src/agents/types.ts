/** Agents: a model with instructions, tools and limits. Type-only. */

import type { PromptRequest } from "../chat/types.ts";
import type { Sampling } from "../engine/types.ts";
import type { ToolLoopChat } from "../tools/tool-loop.ts";
import type { Tool } from "../tools/types.ts";

/** Of one run of an agent. */
export interface AgentLimits {
  /** Rounds of tool calls. Undefined: the server's. */
  rounds?: number | undefined;
  /** Calls it makes, delegations among them. */
  calls: number;
  /** Tokens that it and the agents below it generate. Undefined: no limit but the context. */
  tokens?: number | undefined;
  /** With everything below it. */
  seconds: number;
  /** Agents below it, one delegating to the next. 0: it does its work itself. */
  depth: number;
}

/** What it samples with in place of the model's defaults. */
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

/** What an agent generates with: this server's model, one of its own, or another server's. */
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
  /** For agents that may delegate to it. */
  readonly description: string;
  readonly instructions: string;
  readonly limits: AgentLimits;
  readonly sampling: AgentSampling;
  readonly model: AgentModel;
  /** Names of the agents that it may delegate to. */
  readonly delegates: readonly string[];
  /** Of the MCP servers, those it may call, as they are now. */
  tools(): Tool[];
}
