/** The model's own Jinja template: messages and tools in, guarded prompt text out. */

import { FermataError } from "../../errors.ts";
import type { CallSyntax } from "../../guidance/call-syntax.ts";
import { CallIds } from "./call-ids.ts";
import { TemplateRefusal, TemplateTooCostly } from "./jinja/budget.ts";
import { JinjaTemplate } from "./jinja/jinja-template.ts";
import { strftime } from "./jinja/library.ts";
import { parseExactJson } from "../../json.ts";
import { type Parts, finish, finishInTurns } from "../../parts.ts";
import type { ReasoningMarkers } from "../../guidance/types.ts";
import {
  type TemplateMessage,
  joinSystems,
  normalizeMessages,
  parseArguments,
  rewriteMessages,
} from "./normalize.ts";
import { type TemplateShape, probeShape } from "./template-shape.ts";
import {
  type ReasoningDefault,
  type ReasoningStart,
  type ReasoningSwitch,
  probeReasoning,
  reasoningStart,
  reasoningVariables,
} from "./reasoning-switch.ts";
import type { ChatMessage, ChatModel, TemplateVariables, ToolDefinition } from "../types.ts";
import { type Marks, Guard, chooseMarks, escapedMark } from "./untrusted.ts";

/** A probe: the template's text around it shows where an assistant's words would stand. */
export interface SentinelMessage {
  role: "sentinel";
  withReasoning: boolean;
  standsFor: Extract<ChatMessage, { role: "assistant" }>;
}

export type RenderMessage = ChatMessage | SentinelMessage;

/** Text with guards in it; only to be tokenized together with its guard. */
export interface Rendering {
  readonly text: string;
  readonly marks: Marks;
  /** How an answer begins behind it. */
  readonly reasoning: ReasoningStart;
}

/** What of a request goes into every rendering of it. */
export interface RenderScope {
  tools: readonly ToolDefinition[];
  templateVariables?: TemplateVariables | undefined;
}

export interface RenderOptions extends RenderScope {
  /** End with the opening of the assistant's turn. */
  generationPrompt: boolean;
}

export interface TemplateOptions {
  /** How calls are written where the template has no section for tools. */
  syntax: CallSyntax;
  reasoningByDefault?: ReasoningDefault | undefined;
}

export class ChatTemplate {
  readonly #template: JinjaTemplate;
  readonly source: string | null;
  readonly #model: ChatModel;
  readonly #guard: Guard;
  readonly #reasoning: ReasoningMarkers | null;
  readonly #shape: TemplateShape;
  readonly #syntax: CallSyntax;
  readonly #reasoningByDefault: ReasoningDefault;
  readonly #reasoningSwitch: ReasoningSwitch | null;

  /**
   * @param source null: there is none, and nothing can be rendered
   * @throws FermataError template_error (it does not parse, or costs more than a template may)
   */
  constructor(
    source: string | null,
    model: ChatModel,
    reasoning: ReasoningMarkers | null,
    { syntax, reasoningByDefault = "auto" }: TemplateOptions,
  ) {
    try {
      this.#template = new JinjaTemplate(source ?? "");
    } catch (error) {
      throw templateError(error);
    }
    this.source = source;
    this.#model = model;
    this.#guard = new Guard(model.specialTokens.map((token) => token.text));
    this.#reasoning = reasoning;
    this.#syntax = syntax;
    this.#shape = probeShape(source ?? "", (inputs) => this.#renderProbe(inputs));
    this.#reasoningByDefault = reasoningByDefault;
    const messages = [{ role: "user", content: "Hi" }];
    this.#reasoningSwitch = probeReasoning(source ?? "", reasoning, (variables) =>
      this.#renderProbe({ ...variables, messages }),
    );
  }

  /** A turn may have several calls. */
  get takesSeveralCalls(): boolean {
    return this.#shape.takesSeveralCalls;
  }

  get exists(): boolean {
    return this.source !== null;
  }

  /** It has a variable that switches thinking on or off. */
  get mayThink(): boolean {
    return this.#reasoningSwitch !== null;
  }

  /** It writes the tools itself. Else a generic prompt in the system message tells them. */
  get hasToolSection(): boolean {
    return this.#shape.toolInput !== null;
  }

  /** @throws as `renderInParts` */
  render(messages: readonly RenderMessage[], options: RenderOptions): Rendering {
    return finish(this.renderInParts(messages, options));
  }

  /** @throws as `renderInParts` */
  async renderInTurns(
    messages: readonly RenderMessage[],
    scope: RenderScope,
    generationPrompt = true,
  ): Promise<Rendering> {
    return await finishInTurns(this.renderInParts(messages, { ...scope, generationPrompt }));
  }

  /** As `renderInTurns`; null: the template refuses the messages. */
  async tryRender(...input: Parameters<ChatTemplate["renderInTurns"]>): Promise<Rendering | null> {
    try {
      return await this.renderInTurns(...input);
    } catch (error) {
      if (error instanceof FermataError && error.code === "template_error") return null;
      throw error;
    }
  }

  /** @throws FermataError model_without_template | template_error (the template refuses these messages) */
  *renderInParts(messages: readonly RenderMessage[], options: RenderOptions): Parts<Rendering> {
    if (this.source === null) throw withoutTemplate();
    const marks = this.#chooseMarks(messages, options);
    yield;
    const tools = options.tools.map((tool) => this.#toTemplateTool(tool, marks.guard));
    const variables = reasoningVariables(
      options.templateVariables ?? {},
      this.#reasoningByDefault,
      this.#reasoningSwitch,
    );
    const inputs = {
      ...(this.#guard.json(variables, marks.guard) as object),
      messages: yield* this.#toTemplateMessages(messages, tools, marks),
      ...this.#toolInputs(tools),
      add_generation_prompt: options.generationPrompt,
    };
    try {
      const rendered = unescapeMarks(yield* this.#renderInputs(inputs), marks);
      const text = options.generationPrompt ? this.#withOpening(rendered) : rendered;
      const control = this.#reasoningSwitch;
      return { text, marks, reasoning: reasoningStart(text, this.#reasoning, control, variables) };
    } catch (error) {
      throw templateError(error);
    }
  }

  /** A text of its own, as untrusted as any content; for measuring. */
  guardContent(text: string): { text: string; guard: string } {
    const marks = requireMarks([text]);
    return { text: this.#guard.whole(text, marks.guard), guard: marks.guard };
  }

  #withOpening(text: string): string {
    const { forgottenOpening } = this.#shape;
    return forgottenOpening !== null && text.endsWith(forgottenOpening.after)
      ? text + forgottenOpening.opening
      : text;
  }

  *#renderInputs(inputs: Record<string, unknown>): Parts<string> {
    const now = new Date();
    return yield* this.#template.renderInParts({
      date_string: strftime("%d %b %Y", now),
      datetime: strftime("%b %d %Y", now),
      ...inputs,
      bos_token: this.#model.bosToken,
      eos_token: this.#model.eosToken,
    });
  }

  #renderProbe(inputs: Record<string, unknown>): string | null {
    try {
      return finish(this.#renderInputs({ ...inputs, add_generation_prompt: true }));
    } catch (error) {
      // What costs too much in one of these renderings would in requests as well.
      if (error instanceof TemplateTooCostly) throw templateError(error);
      return null;
    }
  }

  #chooseMarks(
    messages: readonly RenderMessage[],
    { tools, templateVariables }: RenderOptions,
  ): Marks {
    const inputs = [
      this.source ?? "",
      JSON.stringify(tools),
      JSON.stringify(templateVariables ?? {}),
    ];
    for (const message of messages) {
      if (message.role === "sentinel") continue;
      inputs.push(message.content);
      if (message.role === "tool") inputs.push(message.name ?? "", message.toolCallId);
      if (message.role !== "assistant") continue;
      inputs.push(message.reasoning ?? "");
      for (const call of message.toolCalls ?? [])
        inputs.push(call.id, call.name, decodeEscapes(call.arguments));
    }
    return requireMarks(inputs);
  }

  /** `tools` is set in any case, so that no variable of a request takes its place. */
  #toolInputs(tools: readonly unknown[]): Record<string, unknown> {
    const { toolInput } = this.#shape;
    if (tools.length === 0 || toolInput === null) return { tools: undefined };
    const value = toolInput === "functions" ? JSON.stringify(tools) : tools;
    return { tools: undefined, [toolInput]: value };
  }

  *#toTemplateMessages(
    sent: readonly RenderMessage[],
    tools: readonly unknown[],
    marks: Marks,
  ): Parts<readonly TemplateMessage[]> {
    // Apart, a prompt that ends behind the first, or has others behind it, shares it and the tools with this one.
    const staysApart = this.#shape.takesSystemsBehindTools && tools.length > 0;
    const messages = staysApart ? sent : joinSystems(sent);
    const real = messages.filter((message) => message.role !== "sentinel");
    const normalized = normalizeMessages(real, this.#reasoning).values();
    const { wantsShortIds, showsIdsAsNames } = this.#shape;
    const ids = wantsShortIds || showsIdsAsNames ? new CallIds(this.#shape, this.#syntax) : null;
    const written: TemplateMessage[] = [];
    for (const message of messages) {
      written.push(
        message.role === "sentinel"
          ? this.#toTemplateSentinel(message, marks, ids)
          : this.#toTemplateMessage(normalized.next().value ?? message, marks.guard, ids),
      );
      yield;
    }
    return rewriteMessages(written, tools, this.#shape, this.#syntax);
  }

  #toTemplateMessage(message: ChatMessage, guard: string, ids: CallIds | null): TemplateMessage {
    const content = this.#guard.whole(message.content, guard);
    switch (message.role) {
      case "system":
      case "user":
        return { role: message.role, content };
      case "tool":
        return {
          role: "tool",
          content: this.#takesResultsAsValues
            ? this.#toTemplateResult(message.content, guard)
            : content,
          tool_call_id: this.#guard.inner(
            ids?.ofResult(message.toolCallId) ?? message.toolCallId,
            guard,
          ),
          ...(message.name === undefined ? {} : { name: this.#guard.inner(message.name, guard) }),
        };
      case "assistant":
        return this.#toTemplateAssistant(
          content,
          message.reasoning ? this.#guard.whole(message.reasoning, guard) : "",
          (message.toolCalls ?? []).map((call) => this.#toTemplateCall(call, guard, ids)),
        );
    }
  }

  /** A template that is told of results in words has them as texts. */
  get #takesResultsAsValues(): boolean {
    const { joinsToolResults, hasToolRole } = this.#shape;
    return joinsToolResults && (this.hasToolSection || hasToolRole);
  }

  /** As a value, if it is JSON. */
  #toTemplateResult(content: string, guard: string): unknown {
    const value = parseExactJson(content);
    return value === undefined ? this.#guard.whole(content, guard) : this.#guard.json(value, guard);
  }

  #toTemplateSentinel(
    message: SentinelMessage,
    marks: Marks,
    ids: CallIds | null,
  ): TemplateMessage {
    for (const call of message.standsFor.toolCalls ?? []) ids?.ofCall(call);
    return this.#toTemplateAssistant(
      marks.content,
      message.withReasoning ? marks.reasoning : "",
      [],
    );
  }

  #toTemplateAssistant(content: string, reasoning: string, calls: unknown[]): TemplateMessage {
    const { reasoningField, hasContentOrReasoning } = this.#shape;
    const message = {
      role: "assistant",
      content,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    if (reasoning === "") return message;
    if (reasoningField === "blocks") {
      const blocks = [
        { type: "thinking", thinking: reasoning },
        { type: "text", text: content },
      ];
      return { ...message, content: blocks };
    }
    const isEither = hasContentOrReasoning && calls.length > 0;
    return { ...message, content: isEither ? "" : content, [reasoningField]: reasoning };
  }

  #toTemplateCall(
    call: { id: string; name: string; arguments: string },
    guard: string,
    ids: CallIds | null,
  ): Record<string, unknown> {
    return {
      id: this.#guard.inner(ids?.ofCall(call) ?? call.id, guard),
      type: "function",
      function: {
        name: this.#guard.inner(call.name, guard),
        arguments: this.#shape.wantsArgumentsAsText
          ? this.#guard.inner(call.arguments, guard)
          : this.#guard.json(parseArguments(call.arguments, parseExactJson), guard),
      },
    };
  }

  #toTemplateTool(tool: ToolDefinition, guard: string): Record<string, unknown> {
    const { name, description, parameters } = tool;
    const definition = { name, ...(description === undefined ? {} : { description }), parameters };
    return { type: "function", function: this.#guard.json(definition, guard) };
  }
}

function requireMarks(inputs: readonly string[]): Marks {
  const marks = chooseMarks(inputs);
  if (marks !== null) return marks;
  throw new FermataError(
    "invalid_value",
    "The messages use every private-use character; one must stay free.",
    {
      param: "messages",
    },
  );
}

/** `tojson(ensure_ascii=true)` spells the marks out; no input contains that spelling. */
function unescapeMarks(text: string, marks: Marks): string {
  if (!text.includes("\\u")) return text;
  let result = text;
  for (const mark of [marks.guard, marks.content, marks.reasoning])
    result = result.replaceAll(escapedMark(mark), mark);
  return result;
}

/** JSON text whose private-use characters are escaped shows them; parsing would. */
function decodeEscapes(json: string): string {
  return json.includes("\\u") ? `${json}${JSON.stringify(parseArguments(json))}` : json;
}

function withoutTemplate(): FermataError {
  return new FermataError(
    "model_without_template",
    "The model has no chat template, so it cannot chat. Start the server with --chat-template-file FILE, or send the text to /v1/completions.",
    { param: "messages" },
  );
}

function templateError(cause: unknown): FermataError {
  const message = cause instanceof Error ? cause.message : String(cause);
  const problem =
    cause instanceof TemplateRefusal
      ? "The model's chat template refuses the request"
      : "The model's chat template cannot be rendered";
  return new FermataError("template_error", `${problem}: ${message}`, {
    param: "messages",
    cause,
  });
}
