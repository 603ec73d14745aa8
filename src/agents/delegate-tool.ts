/** The tool that hands a task to a sub-agent. */

import type { ToolDefinition } from "../chat/types.ts";
import { interruptedCall } from "../tools/oversight.ts";
import type { ToolLoopOptions } from "../tools/tool-loop.ts";
import { isOfModel, Transcript } from "../tools/transcript.ts";
import type { RunEvent, Tool, ToolCallContext, ToolResult } from "../tools/types.ts";
import {
  delegateDefinition,
  delegationServer,
  readDelegation,
  systemMessages,
} from "./delegation.ts";
import { DelegationJournal } from "./delegation-journal.ts";
import { HeldChat } from "./held-chat.ts";
import type { Agent, AgentRequest, DelegatingRun } from "./types.ts";
import { RoundText } from "../chat/answer/round-text.ts";

/** The agent's own limit comes first and says so; the tool loop's is the backstop. */
const graceMs = 5000;

export class DelegateTool implements Tool {
  readonly definition: ToolDefinition;
  readonly server = delegationServer;
  /** What the agent calls is asked about, not the agent. */
  readonly approval = "never";
  readonly keepsItself = true;
  readonly timeoutMs: number;
  readonly #run: DelegatingRun;
  readonly #delegates: ReadonlyMap<string, Agent>;

  /** @param others the tools that it is offered beside */
  constructor(run: DelegatingRun, delegates: readonly Agent[], others: readonly Tool[]) {
    const taken = new Set(others.map((tool) => tool.definition.name));
    this.definition = delegateDefinition(delegates, taken);
    this.timeoutMs = Math.max(...delegates.map(({ limits }) => limits.seconds)) * 1000 + graceMs;
    this.#run = run;
    this.#delegates = new Map(delegates.map((agent) => [agent.name, agent]));
  }

  async call(args: unknown, context: ToolCallContext): Promise<ToolResult> {
    const delegation = readDelegation(args);
    const agent = delegation === null ? undefined : this.#delegates.get(delegation.agent);
    if (delegation === null || agent === undefined) {
      const names = [...this.#delegates.keys()].join(", ");
      return refused(`name one of the agents ${names} and its task`);
    }
    const { loop } = this.#run.shared;
    const above = loop.oversight?.journal;
    const journal = above && new DelegationJournal(above, context.callId);
    if (journal?.isGivenUp === true) return { content: interruptedCall, isError: true };
    const run = this.#run.below(goingOn(agent, journal));
    if (typeof run === "string") return refused(run);
    try {
      await journal?.begin();
      const options = { ...loop, oversight: loop.oversight && { ...loop.oversight, journal } };
      const request = this.#request(agent, delegation.task, context);
      return await answerOf(run, request, options, { ...context, journal });
    } finally {
      run.close();
    }
  }

  #request(agent: Agent, task: string, { signal }: ToolCallContext): AgentRequest {
    const { owner, client, cacheSalt, seed, watch } = this.#run.shared;
    return {
      messages: systemMessages(agent.instructions, [{ role: "user", content: task }]),
      sampling: { ...agent.model.sampling, logitBias: [], seed, ...agent.sampling },
      stop: [],
      owner,
      client,
      cacheSalt,
      signal,
      watch: watch && ((name = agent.name) => watch(name)),
    };
  }
}

/** Its model begins where that of an earlier process was held. */
function goingOn(agent: Agent, journal: DelegationJournal | undefined): Agent {
  const round = journal?.heldRound ?? null;
  if (round === null) return agent;
  const { model } = agent;
  const chat = new HeldChat(model.chat, round, () => journal!.countResume());
  return { ...agent, model: { ...model, chat }, tools: () => agent.tools() };
}

/** Runs to the end; what fails is told in the result. */
async function answerOf(
  run: DelegatingRun,
  request: AgentRequest,
  options: ToolLoopOptions,
  { report, journal, signal }: ToolCallContext & { journal: DelegationJournal | undefined },
): Promise<ToolResult> {
  const { agent } = run;
  const round = journal?.heldRound ?? null;
  const transcript = new Transcript(round ?? undefined);
  const output = new AgentOutput((text) => report({ type: "output", text }));
  if (round !== null) output.goOn(journal!.earlier!);
  let isKept = round !== null;
  let isCancelled = false;
  let told: Promise<void> | void;
  const keep = async (event: RunEvent): Promise<void> => {
    transcript.add(event);
    if (event.type === "hold" && event.calls.length > 0) {
      const { calls, turn: heldTurn } = event;
      // Who goes on from here tells nothing of what was before.
      await told;
      if (signal.aborted) return;
      await journal?.hold({ messages: transcript.heldMessages, calls, heldTurn }, output.said);
    } else if (event.type === "hold" || isOfModel(event)) journal?.leave();
  };
  const read = async (event: RunEvent): Promise<void> => {
    if (event.type === "content") output.add(event.text);
    if (event.type === "hold") output.endRound();
    if (event.type === "tool-end") output.cite(event.citations);
    if (event.type === "finish") isCancelled = event.reason === "cancelled";
    if (event.type === "hold" && isKept) isKept = false;
    else await keep(event);
    if (event.type === "content") return;
    told = report({ type: "agent", agent: agent.name, event });
    // An agent below waits for what it reported.
    if (event.type === "tool-report") await told;
  };
  try {
    await run.answer(request, run.tools, options, read);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return output.result(true, `the agent ${agent.name} failed: ${problem}`);
  }
  if (isCancelled) return output.result(true, "cancelled");
  if (run.cut !== null) return output.result(false, `the agent ${agent.name} was cut: ${run.cut}`);
  return output.isEmpty
    ? output.result(true, `the agent ${agent.name} ended without an answer`)
    : output.result(false);
}

function refused(why: string): ToolResult {
  return { content: `Error: not run: ${why}.`, isError: true };
}

/** Every part that was told is at its place in the result: parts are a prefix of it. */
class AgentOutput {
  readonly #tell: (text: string) => void;
  readonly #citations = new Set<string>();
  readonly #rounds = new RoundText();
  #text = "";

  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  get said(): { text: string; citations: string[] } {
    return { text: this.#text, citations: [...this.#citations] };
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  add(text: string): void {
    const part = this.#rounds.add(text);
    if (part === "") return;
    this.#text += part;
    this.#tell(part);
  }

  /** Behind what rounds of an earlier process said. */
  goOn({ text, citations }: { text: string; citations: readonly string[] }): void {
    this.add(text);
    this.cite(citations);
  }

  endRound(): void {
    this.#rounds.endRound();
  }

  cite(citations: readonly string[]): void {
    for (const citation of citations) this.#citations.add(citation);
  }

  /** @param note why there is no more of it */
  result(isError: boolean, note: string | null = null): ToolResult {
    const citations = [...this.#citations];
    if (note === null) return { content: this.#text, isError, citations };
    const content = this.#text === "" ? `Error: ${note}` : `${this.#text}\n\n[${note}]`;
    return { content, isError: isError || this.#text === "", citations };
  }
}
