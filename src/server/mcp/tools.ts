/** The model and the agents as tools of an MCP server. */

import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import type { PublishedTool, PublishedTools } from "../../mcp/server/endpoint.ts";
import type { RunEvent } from "../../tools/types.ts";
import { runRequest } from "../answer/answer.ts";
import { AnswerCollector } from "../answer/collect-answer.ts";
import { withModel } from "../answer/model-use.ts";
import { resolveTarget, resolveToolMode } from "../answer/target.ts";
import { readBody, schemaOf, type FieldTable, optional, required } from "../body/field.ts";
import { readSampling, basicSampling, stopField } from "../body/generation.ts";
import type { RouteContext } from "../context.ts";
import { toFermataError } from "../http/error-replies.ts";
import { type AnswerName, answerOf } from "../answer/traces.ts";
import { integer, text } from "../body/values.ts";

/** `agent`: null for the model itself. */
interface Entry extends PublishedTool {
  agent: string | null;
}

export class ModelTools implements PublishedTools {
  readonly #context: RouteContext;
  readonly #owner: string;
  readonly #answer: AnswerName;
  readonly #log: FastifyBaseLogger;

  constructor(context: RouteContext, request: FastifyRequest) {
    this.#context = context;
    this.#owner = request.owner;
    this.#answer = answerOf(request);
    this.#log = request.log;
  }

  list(): PublishedTool[] {
    return this.#entries().map(({ agent: _agent, ...tool }) => tool);
  }

  async call(
    name: string,
    args: unknown,
    { signal, report }: { signal: AbortSignal; report(message: string): void },
  ): Promise<{ text: string; isError: boolean }> {
    try {
      const entry = this.#entries().find((tool) => tool.name === name)!;
      const collector = new AnswerCollector();
      await this.#context.services.tools?.missing?.();
      const sink = async (event: RunEvent): Promise<void> => {
        collector.add(event);
        const doing = progressOf(event);
        if (doing !== null) report(doing);
      };
      await withModel(entry.agent, this.#context, { signal }, (own) =>
        this.#run(own, { agent: entry.agent, args, signal }, sink),
      );
      const { content, finish } = collector.answer();
      const isCut = finish.reason === "length";
      const cut = "\n[The answer was cut: a limit of tokens, time or context is reached.]";
      return { text: isCut ? content + cut : content, isError: false };
    } catch (error) {
      const known = toFermataError(error);
      if (known.status >= 500)
        this.#log.warn({ tool: name, error: known.message }, "MCP call failed");
      return { text: known.message, isError: true };
    }
  }

  #entries(): Entry[] {
    const { agents, model } = this.#context.services;
    const names = agents?.names() ?? [];
    // Agents keep their names.
    const chat = names.includes("chat") ? "fermata-chat" : "chat";
    return [
      ...names.map((agent) => ({
        name: agent,
        description: agents?.find(agent)?.description ?? "",
        inputSchema: inputSchema(agentToolFields),
        agent,
      })),
      {
        name: chat,
        description: `Asks the language model ${model.id} and returns its answer.`,
        inputSchema: inputSchema(chatToolFields),
        agent: null,
      },
    ];
  }

  async #run(
    context: RouteContext,
    { agent, args, signal }: { agent: string | null; args: unknown; signal: AbortSignal },
    sink: (event: RunEvent) => Promise<void>,
  ): Promise<void> {
    const startedAt = performance.now();
    const target = resolveTarget(agent, context);
    const reading = { warn: context.warnings.warn };
    const fields = agent === null ? chatToolFields : agentToolFields;
    const given = readBody(fields, args, reading, 'Send {"prompt": "…"}');
    const system = "system" in given && typeof given.system === "string" ? given.system : "";
    const messages = [
      ...(system === "" ? [] : [{ role: "system" as const, content: system }]),
      { role: "user" as const, content: given.prompt },
    ];
    const asked = given.max_tokens ?? target.maxTokens;
    const conversation = {
      messages: target.instruct(messages),
      sampling: readSampling(given, target),
      stop: given.stop,
      maxTokens: asked === undefined ? undefined : Math.min(asked, target.contextSize),
      owner: this.#owner,
      signal,
    };
    const mode = resolveToolMode(
      { tools: null, toolChoice: { mode: "auto" }, messages },
      target.tools,
    );
    const answer = this.#answer;
    const run = { ...context, target, answer, log: this.#log, startedAt, tellsTools: true };
    await runRequest(conversation, mode, run, sink);
  }
}

function inputSchema(fields: FieldTable): PublishedTool["inputSchema"] {
  return { ...schemaOf(fields), type: "object" };
}

/** Null: not worth a word. */
function progressOf(event: RunEvent): string | null {
  switch (event.type) {
    case "progress":
      return "reading the prompt";
    case "content":
      return "writing the answer";
    case "reasoning":
      return "thinking";
    case "call-start":
      return `calling ${event.name}`;
    case "tool-start":
      return `${event.call.name} runs`;
    case "tool-report":
      return event.report.type === "agent"
        ? `${event.report.agent} works`
        : `${event.call.name} runs`;
    case "tool-approval":
      return event.state === "asked" ? `${event.call.name} waits for a person's approval` : null;
    case "tool-end":
      return `${event.call.name} ended`;
    default:
      return null;
  }
}

const { temperature, top_p, seed } = basicSampling;

const sharedFields = {
  max_tokens: optional(integer(1), "at most the context"),
  temperature,
  top_p,
  seed,
  stop: stopField,
} satisfies FieldTable;

const chatToolFields = {
  prompt: required(text({ min: 1, remedy: "Send a text" }), "the user's message"),
  system: optional(text({ remedy: "Send a text" }), "the system message", ""),
  ...sharedFields,
} satisfies FieldTable;

/** An agent brings its instructions. */
const agentToolFields = {
  prompt: required(
    text({ min: 1, remedy: "Send a text" }),
    "the task, with all that is needed for it",
  ),
  ...sharedFields,
} satisfies FieldTable;
