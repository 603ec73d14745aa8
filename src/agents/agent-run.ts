/** One run of an agent, for a request or for an agent above it: what it may use and what it has used. */

import type { ChatRequest } from "../chat/types.ts";
import { FermataError } from "../errors.ts";
import type { Sink } from "../tools/event-stream.ts";
import { ToolLoop, type ToolLoopOptions } from "../tools/tool-loop.ts";
import type { RunEvent, Tool } from "../tools/types.ts";
import { DelegateTool } from "./delegate-tool.ts";
import { MeteredChat, TokenBudget } from "./token-budget.ts";
import type { Agent, AgentRequest, DelegatingRun, SharedByRuns } from "./types.ts";

/** Agents on the way from the request to this run, and what is left for those below. */
interface Place {
  depth: number;
  budget: TokenBudget;
  seconds: number;
}

/** Of a run's time: then its tools are stopped, so that it can answer yet. */
const toolShare = 0.9;
/** Of what is left of that: a sub-agent ends before it is stopped, and with what it has said. */
const agentShare = 0.95;

type FindAgent = (name: string) => Agent | undefined;

export class AgentRun implements DelegatingRun {
  readonly agent: Agent;
  /** Agents that may still be below it. */
  readonly depth: number;
  readonly chat: MeteredChat;
  readonly tools: readonly Tool[];
  readonly #find: FindAgent;
  readonly #seconds: number;
  /** On `performance.now()`'s clock. */
  #toolsEndAt = Infinity;
  readonly #budget: TokenBudget;
  #cut: string | null = null;
  #shared: SharedByRuns | null = null;

  /** A run that is no other's. */
  constructor(agent: Agent, find: FindAgent, place: Partial<Place> = {}) {
    this.agent = agent;
    this.#find = find;
    this.depth = Math.min(agent.limits.depth, place.depth ?? Infinity);
    this.#seconds = Math.min(agent.limits.seconds, place.seconds ?? Infinity);
    this.#budget = place.budget ?? new TokenBudget(agent.limits.tokens);
    this.chat = new MeteredChat(agent.model.chat, this.#budget);
    this.tools = this.#offered();
  }

  get cut(): string | null {
    return this.#cut;
  }

  get shared(): SharedByRuns {
    if (this.#shared !== null) return this.#shared;
    throw new FermataError("internal_error", "The run has not begun.");
  }

  below(agent: Agent): AgentRun | string {
    if (this.depth < 1) return "agents may not be nested any deeper. Do the task yourself";
    const seconds = ((this.#toolsEndAt - performance.now()) / 1000) * agentShare;
    if (seconds <= 0)
      return "too little time is left for another agent. Answer now with what you have";
    const budget = this.#budget.reserve(agent.limits.tokens);
    if (budget === null)
      return "too few tokens are left for another agent. Answer now with what you have";
    return new AgentRun(agent, this.#find, { depth: this.depth - 1, budget, seconds });
  }

  close(): void {
    this.#budget.close();
  }

  /** A `ToolLoop` within the agent's limits. What time or tokens cut ends with reason `length`. */
  async answer(
    request: AgentRequest,
    tools: readonly Tool[],
    options: ToolLoopOptions,
    sink: Sink<RunEvent>,
  ): Promise<void> {
    const { offered: _offered, handsOver: _handsOver, maxCalls, ...shared } = options;
    const { owner, client, cacheSalt, sampling, watch } = request;
    this.#shared = { owner, client, cacheSalt, seed: sampling.seed, watch, loop: shared };
    const { rounds, calls } = this.agent.limits;
    const maxSeconds = Math.min(options.maxSeconds ?? Infinity, this.#seconds * toolShare);
    this.#toolsEndAt = performance.now() + maxSeconds * 1000;
    const loop = {
      ...options,
      maxRounds: rounds ?? options.maxRounds,
      maxCalls: Math.min(calls, maxCalls ?? Infinity),
      maxSeconds,
    };
    await this.#inTime(request.signal, sink, (signal, timed) =>
      new ToolLoop(this.chat, { ...request, signal }, tools, loop).run(timed),
    );
  }

  /** One generation, its calls left to the caller. What time or tokens cut ends with reason `length`. */
  async generate(request: ChatRequest, sink: Sink<RunEvent>): Promise<void> {
    await this.#inTime(request.signal, sink, async (signal, timed) => {
      for await (const event of this.chat.generate({ ...request, signal })) await timed(event);
    });
  }

  async #inTime(
    signal: AbortSignal | undefined,
    sink: Sink<RunEvent>,
    run: (signal: AbortSignal, sink: Sink<RunEvent>) => Promise<void>,
  ): Promise<void> {
    const seconds = this.#seconds;
    const late = new AbortController();
    const stop = (): void => late.abort(new DOMException("The run is over.", "TimeoutError"));
    const timer = setTimeout(stop, Math.ceil(seconds * 1000)).unref();
    const ended = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
    try {
      await run(ended, (event) => {
        if (event.type !== "finish") return sink(event);
        const isLate =
          event.reason === "cancelled" && late.signal.aborted && signal?.aborted !== true;
        if (isLate) this.#cut = `the limit of ${Math.round(seconds * 10) / 10} seconds is reached`;
        else if (event.reason === "length") this.#cut = this.#lengthCut();
        else if (event.reason === "content_filter")
          this.#cut = "the content filter of its endpoint stopped it";
        return sink(isLate ? { ...event, reason: "length" } : event);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  #lengthCut(): string {
    const { limit, left } = this.#budget;
    if (left === 0) return `the limit of ${limit} tokens is reached`;
    return "there is no more room for its answer";
  }

  #offered(): Tool[] {
    const { agent } = this;
    const tools = agent.tools();
    const delegates = agent.delegates.flatMap((name) => this.#find(name) ?? []);
    // The last one: agents without it have the same tools before it, and so the same prefix.
    if (delegates.length === 0 || agent.limits.depth === 0) return tools;
    return [...tools, new DelegateTool(this, delegates, tools)];
  }
}
