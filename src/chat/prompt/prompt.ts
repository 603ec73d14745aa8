/** Messages and tools to prompt tokens, with the tokens of generated turns spliced in. */

import type { PauseTriggers } from "../../engine/types.ts";
import { FermataError, type PromptSize } from "../../errors.ts";
import {
  type ToolCallFormat,
  pauseTriggersOf,
  reasoningOf,
  spelledTokensOf,
} from "../formats/format.ts";
import { detectFormat, formatNamed, formats, genericFormat } from "../formats/formats.ts";
import { Pauses } from "../../parts.ts";
import type { ReasoningMarkers } from "../../guidance/types.ts";
import { countSystems, normalizeMessages } from "../template/normalize.ts";
import { MarkFinder, type PromptMarks, beginningOf } from "./marks.ts";
import { findBeginnings } from "./prompt-digest.ts";
import type { SpliceRecord, SpliceStore } from "./splice-store.ts";
import { SuffixDeriver, joinAtEndToken } from "./suffix.ts";
import { ChatTemplate, type RenderScope, type Rendering } from "../template/template.ts";
import type { ReasoningDefault } from "../template/reasoning-switch.ts";
import type { ChatEngine, ChatMessage, ChatModel, PromptRequest } from "../types.ts";

export interface Prompt {
  tokens: Int32Array;
  /** What the tokens stand for, to the letter or, where turns were spliced, in the template's words. */
  rendering: Rendering;
  /** The messages of `rendering`. */
  messages: readonly ChatMessage[];
  spliced: boolean;
  /** So many tokens come first that `rendering` does not stand for. */
  leadingCount: number;
}

export interface PromptBuilderOptions {
  template?: string | undefined;
  /** A format's name. Default: found from the template. */
  toolFormat?: string | undefined;
  reasoning?: ReasoningDefault | undefined;
  turns: SpliceStore;
}

const noTokens = new Int32Array(0);

export class PromptBuilder {
  readonly template: ChatTemplate;
  readonly suffixes: SuffixDeriver;
  readonly format: ToolCallFormat;
  /** Ids of control tokens that the format's parser must see in the text. */
  readonly spelledTokens: Int32Array;
  /** When the engine holds for calls of the format. */
  readonly pauseTriggers: PauseTriggers;
  readonly reasoning: ReasoningMarkers | null;
  /** Earlier turns with their tokens. */
  readonly turns: SpliceStore;
  readonly #engine: ChatEngine;
  readonly #specials: ReadonlyMap<number, string>;
  /** Null: the model can be cut back anywhere, and no other engine shares its cache. */
  readonly #marks: MarkFinder | null;

  /** @throws FermataError template_error (it does not parse) | invalid_option (no such format) */
  constructor(engine: ChatEngine, options: PromptBuilderOptions) {
    const source = options.template ?? engine.model.chatTemplate;
    const { template, format, reasoning } = openTemplate(source, engine.model, options);
    this.#engine = engine;
    this.template = template;
    this.format = format;
    this.reasoning = reasoning;
    this.spelledTokens = spelledTokensOf(this.format, engine.model);
    this.pauseTriggers = pauseTriggersOf(this.format);
    this.suffixes = new SuffixDeriver(this.template, this.reasoning, engine.model.eosToken);
    this.turns = options.turns;
    const { cutsAnywhere = true, isShared = false } = engine.cache;
    this.#marks = cutsAnywhere && !isShared ? null : new MarkFinder(engine);
    this.#specials = new Map(engine.model.specialTokens.map((token) => [token.id, token.text]));
  }

  /**
   * @throws FermataError model_without_template | template_error | context_length_exceeded | unsupported_value (of a
   *   prefill)
   */
  async build(request: PromptRequest): Promise<Prompt> {
    const contextSize = this.#engine.cache.cellsPerSequence;
    const prompt = await this.buildOfAnyLength(request);
    const promptTokens = prompt.tokens.length;
    if (promptTokens < contextSize) return prompt;
    const problem = `the messages and tools take ${promptTokens}`;
    throw tooLong(contextSize, problem, { promptTokens, contextSize });
  }

  /** @throws as `build`, of the length only if there are more messages than the context has tokens */
  async buildOfAnyLength(request: PromptRequest): Promise<Prompt> {
    this.#checkCount(request.messages);
    const { openTurn = true, leadingTokens = noTokens } = request;
    const isLed = leadingTokens.length > 0;
    const spliced = openTurn && !isLed ? await this.#splice(request) : null;
    const bare = spliced ?? (await this.#renderOrBegin(request, openTurn));
    const begun = request.prefill ? await this.#begin(bare, request.prefill) : bare;
    return isLed ? this.#lead(leadingTokens, begun) : begun;
  }

  /** Where other prompts may leave `prompt`, which was built from `scope`; null where the model or the prompt has no marks. */
  async marksOf(prompt: Prompt, scope: RenderScope): Promise<PromptMarks | null> {
    if (this.#marks === null || prompt.leadingCount > 0) return null;
    // Who has computed a turn of the conversation has had its beginning.
    if (prompt.spliced && this.#engine.cache.cutsAnywhere !== false) return null;
    return await this.#marks.find(prompt, (messages, generationPrompt) =>
      this.template.tryRender(messages, scope, generationPrompt),
    );
  }

  /** Of system messages that the template refuses without a user's, what comes before any user's is read ahead. */
  async #renderOrBegin(request: PromptRequest, openTurn: boolean): Promise<Prompt> {
    const { messages, readsAhead = false } = request;
    try {
      return await this.render(messages, request, openTurn);
    } catch (error) {
      if (!readsAhead || countSystems(messages) < messages.length) throw error;
      const begun = await beginningOf(messages, (shown, generationPrompt) =>
        this.template.tryRender(shown, request, generationPrompt),
      );
      if (begun === null) throw error;
      return await this.#tokenize(begun, messages);
    }
  }

  /** The template's text alone, nothing spliced, however long. @throws as `ChatTemplate.render` */
  async render(
    messages: readonly ChatMessage[],
    scope: RenderScope,
    openTurn = true,
  ): Promise<Prompt> {
    const rendering = await this.template.renderInTurns(messages, scope, openTurn);
    return await this.#tokenize(rendering, messages);
  }

  async #tokenize(rendering: Rendering, messages: readonly ChatMessage[]): Promise<Prompt> {
    const { text, marks } = rendering;
    const tokens = await this.#engine.tokenize(text, marks.guard, this.#engine.model.addBos);
    return { tokens, rendering, messages, spliced: false, leadingCount: 0 };
  }

  /**
   * The template's text with special tokens spelled, and what the answer begins with, however long.
   * @throws FermataError model_without_template | template_error | context_length_exceeded (more messages than
   *   tokens) | unsupported_value (of a prefill)
   */
  async text(request: Omit<PromptRequest, "owner">): Promise<string> {
    const { messages, prefill = "", openTurn } = request;
    this.#checkCount(messages);
    const rendering = await this.template.renderInTurns(messages, request, openTurn);
    if (prefill !== "") this.#checkPrefill(rendering);
    return rendering.text.replaceAll(rendering.marks.guard, "") + prefill;
  }

  /** Spelling of the last token if it is a special one, else "". */
  endTokenOf(tokens: readonly number[]): string {
    return this.#specials.get(tokens.at(-1) ?? -1) ?? "";
  }

  /** The prompt with the first words of its answer, which are text and never special tokens. */
  async #begin(prompt: Prompt, words: string): Promise<Prompt> {
    this.#checkPrefill(prompt.rendering);
    const { text, guard } = this.template.guardContent(words);
    const begun = await this.#engine.tokenize(text, guard, false);
    return { ...prompt, tokens: joined(prompt.tokens, begun) };
  }

  /** The prompt behind the tokens of a history. Only the first of them begins a text. */
  #lead(history: Int32Array, prompt: Prompt): Prompt {
    const { bosToken } = this.#engine.model;
    const begins = bosToken !== "" && this.#specials.get(prompt.tokens[0] ?? -1) === bosToken;
    const tokens = joined(history, begins ? prompt.tokens.subarray(1) : prompt.tokens);
    return { ...prompt, tokens, leadingCount: history.length };
  }

  #checkPrefill({ reasoning }: Rendering): void {
    const { usesChannels, recipients } = this.format;
    const hasHeader = usesChannels || recipients !== null;
    if (!hasHeader && reasoning !== "open") return;
    throw new FermataError(
      "unsupported_value",
      hasHeader
        ? "\"messages\" ends with the assistant's words, and this model's answers begin with a header. Let the last message be the user's."
        : "\"messages\" ends with the assistant's words, and this model reasons before it answers. Turn thinking off, or let the last message be the user's.",
      { param: "messages" },
    );
  }

  async #splice(request: PromptRequest): Promise<Prompt | null> {
    const sent = normalizeMessages(request.messages, this.reasoning);
    const messages = await this.#restoreTurns(request, sent);
    // The newest first.
    const known = messages.flatMap((message, index) => {
      const found = message.role === "assistant" ? this.turns.find(request, message) : [];
      const records = found.filter(({ messageCount }) => messageCount === index);
      return records.map((record) => ({ index, record })).reverse();
    });
    known.reverse();
    if (known.length === 0) return null;
    const whole = await this.template.tryRender(messages, request);
    // The prompt of the next record must be what the messages render to, not a probe.
    if (whole === null) return null;
    // Most conversations end here: a clock in the system message, another one's answer.
    const beginnings = findBeginnings(
      whole,
      known.map(({ record }) => record.prompt),
    );
    for (const { index, record } of known) {
      if (!beginnings.has(record.prompt)) continue;
      const prompt = await this.#spliceAt(request, messages, { index, record, whole });
      if (prompt === null) continue;
      this.turns.touch(record);
      return prompt;
    }
    return null;
  }

  async #spliceAt(
    { tools, templateVariables }: RenderScope,
    messages: readonly ChatMessage[],
    { index, record, whole }: { index: number; record: SpliceRecord; whole: Rendering },
  ): Promise<Prompt | null> {
    const suffix = await this.suffixes.derive({
      tools,
      templateVariables,
      prompt: { ...whole, text: whole.text.slice(0, record.prompt.length) },
      before: messages.slice(0, index),
      turn: record.turn,
      after: messages.slice(index + 1),
      whole,
    });
    if (suffix === null) return null;
    const { keepPending, text } = joinAtEndToken(suffix.text, record.turn.endToken);
    const known =
      keepPending || record.turn.endToken === "" ? record.tokens : record.tokens.subarray(0, -1);
    const added = await this.#engine.tokenize(text, suffix.guard, false);
    const tokens = joined(known, added);
    return { tokens, rendering: suffix.rendering, messages, spliced: true, leadingCount: 0 };
  }

  /**
   * As the model said it: clients rarely send reasoning back, and write the calls' JSON in their own way.
   * The tokens to splice have both, so the rendering must too.
   */
  async #restoreTurns(
    request: PromptRequest,
    sent: readonly ChatMessage[],
  ): Promise<ChatMessage[]> {
    const pauses = new Pauses();
    const messages: ChatMessage[] = [];
    for (const message of sent) {
      if (pauses.isDue) await pauses.take();
      if (message.role !== "assistant") {
        messages.push(message);
        continue;
      }
      const answers = this.turns.findAnswers(request, message);
      const [answer] = await this.#continuing(answers, messages, request);
      if (answer === undefined) messages.push(await this.#restoreTurn(request, message, messages));
      else {
        this.turns.touch(answer);
        messages.push(...answer.rounds);
      }
    }
    return messages;
  }

  async #restoreTurn(
    request: PromptRequest,
    message: Extract<ChatMessage, { role: "assistant" }>,
    before: readonly ChatMessage[],
  ): Promise<ChatMessage> {
    const found = this.turns.find(request, message);
    // The same may have been said elsewhere, for other reasons.
    const isClear = new Set(found.map(({ turn }) => turn.message.reasoning)).size < 2;
    const [record] = isClear ? found : await this.#continuing(found, before, request);
    return record?.turn.message ?? message;
  }

  /** Of what is remembered, what continued these messages. They are rendered at most once. */
  async #continuing<Remembered extends Pick<SpliceRecord, "prompt" | "messageCount">>(
    remembered: readonly Remembered[],
    messages: readonly ChatMessage[],
    scope: RenderScope,
  ): Promise<Remembered[]> {
    const asLong = remembered.filter(({ messageCount }) => messageCount === messages.length);
    const rendering = asLong.length === 0 ? null : await this.template.tryRender(messages, scope);
    if (rendering === null) return [];
    const equal = asLong.filter(({ prompt }) => prompt.length === rendering.text.length);
    const beginnings = findBeginnings(
      rendering,
      equal.map(({ prompt }) => prompt),
    );
    return equal.filter(({ prompt }) => beginnings.has(prompt));
  }

  /** To render so many would take the thread for long, and each makes one token at least. */
  #checkCount({ length }: readonly ChatMessage[]): void {
    const contextSize = this.#engine.cache.cellsPerSequence;
    if (length >= contextSize) throw tooLong(contextSize, `there are ${length} messages`);
  }
}

/**
 * @param source null: there is none
 * @throws FermataError template_error (it does not parse) | invalid_option (no such format)
 */
export function openTemplate(
  source: string | null,
  model: ChatModel,
  {
    toolFormat,
    reasoning: reasoningByDefault,
  }: Pick<PromptBuilderOptions, "toolFormat" | "reasoning"> = {},
): { template: ChatTemplate; format: ToolCallFormat; reasoning: ReasoningMarkers | null } {
  const found = chooseFormat(source ?? "", toolFormat);
  const generic = toolFormat === undefined ? genericFormat(found) : found;
  const reasoning = reasoningOf(found, source ?? "");
  const { syntax } = generic;
  const template = new ChatTemplate(source, model, reasoning, { syntax, reasoningByDefault });
  return { template, format: template.hasToolSection ? found : generic, reasoning };
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  const tokens = new Int32Array(first.length + second.length);
  tokens.set(first);
  tokens.set(second, first.length);
  return tokens;
}

function tooLong(contextSize: number, problem: string, size?: PromptSize): FermataError {
  // Clients that see no code, and openai's for Python shows them none, look for OpenAI's beginning or for "prompt is too long".
  const message = `This model's maximum context length is ${contextSize} tokens; the prompt is too long: ${problem}, and an answer needs at least one more.`;
  return new FermataError("context_length_exceeded", message, {
    param: "messages",
    size: size ?? null,
  });
}

function chooseFormat(template: string, name: string | undefined): ToolCallFormat {
  if (name === undefined) return detectFormat(template);
  const format = formatNamed(name);
  if (format !== undefined) return format;
  const names = formats.map((known) => known.name).join(", ");
  throw new FermataError(
    "invalid_option",
    `There is no tool-call format "${name}". Known: ${names}.`,
  );
}
