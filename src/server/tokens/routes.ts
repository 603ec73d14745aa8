/** POST /tokenize, /detokenize and /apply-template, as llama-server has them; the first two as vLLM has them, too, and GET /tokenizer_info. */

import {
  answer,
  boolean,
  list,
  nullable,
  oneOf,
  string,
  whole,
  type ValueOf,
} from "../body/shapes.ts";
import type { Route } from "../route.ts";
import { conversationOf, templateVariables } from "../body/prompt.ts";
import {
  readBody,
  readBodyInParts,
  readFieldsInParts,
  expectBody,
  fieldError,
  type ValuesOf,
} from "../body/field.ts";
import { tokenText } from "../answer/logprobs.ts";
import { finishInTurns, type Parts } from "../../parts.ts";
import type { RouteContext } from "../context.ts";
import { type JsonObject, isJsonObject } from "../../json.ts";
import {
  detokenizeFields,
  templateBodyFields,
  tokenizeChatFields,
  tokenizeFields,
  tokenizePromptFields,
} from "./fields.ts";

/** Each is an object: of as many as a body may have, memory would not hold them. */
const maxPieces = 200_000;
/** Tokens of an answer that are written at once. */
const partLength = 8192;
const comma = Buffer.from(",");

/** A piece that is no UTF-8 by itself is an array of bytes. */
const piece = answer({ id: whole, piece: oneOf(string, list(whole)) });
type TokenPiece = ValueOf<typeof piece>;

export function tokenRoutes({ services, warnings }: RouteContext): Route[] {
  const { engine, chat, model } = services;
  const { warn } = warnings;
  const { vocabularySize } = model;

  const tokenize = async (body: unknown): Promise<Buffer | object> => {
    if (isJsonObject(body) && body["content"] === undefined) {
      if (body["messages"] !== undefined) return await tokenizeChat(body);
      if (body["prompt"] !== undefined) return await tokenizePrompt(body);
    }
    const given = readBody(tokenizeFields, body, { warn }, 'Send {"content": "…"}');
    const { content, add_special: addSpecial, parse_special: parseSpecial } = given;
    const { text, guard } = parseSpecial ? { text: content, guard: "" } : chat.guardText(content);
    const tokens = await engine.tokenize(text, guard, addSpecial && engine.model.addBos);
    if (!given.with_pieces) return await finishInTurns(jsonOf(tokens, {}));
    if (tokens.length > maxPieces) throw tooMany(tokens, "content", "with_pieces");
    const pieces = Array.from(tokens, (id): TokenPiece => ({
      id,
      piece: pieceOf(engine.tokenBytes(id)),
    }));
    return { tokens: pieces };
  };

  /** As vLLM answers. */
  const counted = async (
    tokens: Int32Array,
    withTexts: boolean,
    field: string,
  ): Promise<Buffer> => {
    if (withTexts && tokens.length > maxPieces) throw tooMany(tokens, field, "return_token_strs");
    const rest = {
      count: tokens.length,
      max_model_len: model.contextSize,
      token_strs: withTexts ? Array.from(tokens, (id) => tokenText(engine.tokenBytes(id))) : null,
    };
    return await finishInTurns(jsonOf(tokens, rest));
  };

  const tokenizePrompt = async (body: unknown): Promise<Buffer> => {
    const given = readBody(tokenizePromptFields, body, { warn }, 'Send {"prompt": "…"}');
    const adds = given.add_special_tokens && engine.model.addBos;
    const tokens = await engine.tokenize(given.prompt, "", adds);
    return await counted(tokens, given.return_token_strs, "prompt");
  };

  const tokenizeChat = async (body: JsonObject): Promise<Buffer> => {
    const given = await finishInTurns(
      readBodyInParts(tokenizeChatFields, body, { warn }, 'Send {"messages": […]}'),
    );
    const adds = given.add_special_tokens && engine.model.addBos;
    const tokens = await engine.tokenize(await promptOf(given), "", adds);
    return await counted(tokens, given.return_token_strs, "messages");
  };

  const detokenize = async (body: unknown): Promise<{ content: string; prompt: string }> => {
    const reading = { warn, vocabularySize };
    const { tokens } = await finishInTurns(
      readBodyInParts(detokenizeFields, body, reading, 'Send {"tokens": […]}'),
    );
    const text = tokens.length === 0 ? "" : engine.detokenize(tokens);
    return { content: text, prompt: text };
  };

  /** The prompt that a chat completion would begin with: of its body, what goes into the prompt. */
  const applyTemplate = async (body: unknown): Promise<{ prompt: string }> => {
    expectBody(body, 'Send {"messages": […]}');
    const given = await finishInTurns(readFieldsInParts(templateBodyFields, body, { warn }));
    return { prompt: await promptOf(given) };
  };

  const promptOf = async (given: ValuesOf<typeof templateBodyFields>): Promise<string> =>
    await chat.promptText({
      ...conversationOf(given),
      tools: given.tools?.definitions ?? [],
      templateVariables: templateVariables(given.reasoning_effort, given.chat_template_kwargs),
    });

  const info = (): object => ({
    tokenizer_class: "GGUF",
    model_max_length: model.contextSize,
    add_bos_token: engine.model.addBos,
    bos_token: spelled(engine.model.bosToken),
    eos_token: spelled(engine.model.eosToken),
    // Texts are never padded here.
    pad_token: null,
    chat_template: chat.templateSource,
  });

  const answered =
    (answerTo: (body: unknown) => unknown): Route["handler"] =>
    async ({ body }, reply) => {
      reply.type("application/json; charset=utf-8");
      return await answerTo(body);
    };
  return [
    {
      at: "POST /tokenize",
      summary: "A text as tokens.",
      request: tokenizeFields,
      answer: answer(
        { tokens: oneOf(list(whole), list(piece)) },
        // vLLM's.
        { count: whole, max_model_len: whole, token_strs: nullable(list(string)) },
      ),
      handler: answered(tokenize),
    },
    {
      at: "POST /detokenize",
      summary: "Tokens as text.",
      request: detokenizeFields,
      answer: answer({ content: string, prompt: string }),
      handler: answered(detokenize),
    },
    {
      at: "POST /apply-template",
      summary: "The prompt that a chat completion would begin with.",
      request: templateBodyFields,
      answer: answer({ prompt: string }),
      handler: answered(applyTemplate),
    },
    {
      at: "GET /tokenizer_info",
      summary: "The special tokens and the chat template, as vLLM tells them.",
      answer: answer({
        tokenizer_class: string,
        model_max_length: whole,
        add_bos_token: boolean,
        bos_token: nullable(string),
        eos_token: nullable(string),
        pad_token: nullable(string),
        chat_template: nullable(string),
      }),
      handler: answered(info),
    },
  ];
}

/** @param spelling empty when the vocabulary has no such token */
function spelled(spelling: string): string | null {
  return spelling === "" ? null : spelling;
}

function tooMany(tokens: Int32Array, field: string, option: string): Error {
  const problem = `has ${tokens.length} tokens; ${option} takes at most ${maxPieces}`;
  return fieldError("invalid_value", field, problem, `Send a shorter text or leave out ${option}`);
}

/**
 * `{...rest, tokens}`. Of a long text there are a million, too many for one piece of the thread's time; as bytes, since
 * a string of that length is encoded at once when it is sent.
 */
function* jsonOf(tokens: Int32Array, rest: JsonObject): Parts<Buffer> {
  const fields = JSON.stringify(rest).slice(1, -1);
  const parts = [Buffer.from(`{${fields}${fields === "" ? "" : ","}"tokens":[`)];
  for (let start = 0; start < tokens.length; start += partLength) {
    if (start > 0) parts.push(comma);
    parts.push(Buffer.from(tokens.subarray(start, start + partLength).join(","), "latin1"));
    yield;
  }
  parts.push(Buffer.from("]}"));
  return Buffer.concat(parts);
}

function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [...bytes];
  }
}
