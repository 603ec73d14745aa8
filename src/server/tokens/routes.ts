/** POST /tokenize, /detokenize and /apply-template, as llama-server has them. */

import type { RouteOptions } from "fastify";
import { conversationOf, templateVariables } from "../body/prompt.ts";
import {
  readBody,
  readBodyInParts,
  readFieldsInParts,
  expectBody,
  fieldError,
} from "../body/field.ts";
import { finishInTurns, type Parts } from "../../parts.ts";
import type { RouteContext } from "../context.ts";
import { detokenizeFields, templateBodyFields, tokenizeFields } from "./fields.ts";

/** Each is an object: of as many as a body may have, memory would not hold them. */
const maxPieces = 200_000;
/** Tokens of an answer that are written at once. */
const partLength = 8192;

/** A piece that is no UTF-8 by itself is an array of bytes. */
interface TokenPiece {
  id: number;
  piece: string | number[];
}

export function tokenRoutes({ services, warnings }: RouteContext): RouteOptions[] {
  const { engine, chat, model } = services;
  const { warn } = warnings;
  const { vocabularySize } = model;

  const tokenize = async (body: unknown): Promise<string | { tokens: TokenPiece[] }> => {
    const given = readBody(tokenizeFields, body, { warn }, 'Send {"content": "…"}');
    const { content, add_special: addSpecial, parse_special: parseSpecial } = given;
    const { text, guard } = parseSpecial ? { text: content, guard: "" } : chat.guardText(content);
    const tokens = await engine.tokenize(text, guard, addSpecial && engine.model.addBos);
    if (!given.with_pieces) return await finishInTurns(jsonOf(tokens));
    if (tokens.length > maxPieces) {
      const problem = `has ${tokens.length} tokens; with_pieces takes at most ${maxPieces}`;
      throw fieldError(
        "invalid_value",
        "content",
        problem,
        "Send a shorter text or leave out with_pieces",
      );
    }
    return {
      tokens: Array.from(tokens, (id) => ({ id, piece: pieceOf(engine.tokenBytes(id)) })),
    };
  };

  const detokenize = async (body: unknown): Promise<{ content: string }> => {
    const reading = { warn, vocabularySize };
    const { tokens } = await finishInTurns(
      readBodyInParts(detokenizeFields, body, reading, 'Send {"tokens": […]}'),
    );
    return { content: tokens.length === 0 ? "" : engine.detokenize(tokens) };
  };

  /** The prompt that a chat completion would begin with: of its body, what goes into the prompt. */
  const applyTemplate = async (body: unknown): Promise<{ prompt: string }> => {
    expectBody(body, 'Send {"messages": […]}');
    const given = await finishInTurns(readFieldsInParts(templateBodyFields, body, { warn }));
    const prompt = await chat.promptText({
      ...conversationOf(given, (body["messages"] as unknown[]).length),
      tools: given.tools ?? [],
      templateVariables: templateVariables(given.reasoning_effort, given.chat_template_kwargs),
    });
    return { prompt };
  };

  const route = (url: string, answer: (body: unknown) => unknown): RouteOptions => ({
    method: "POST",
    url,
    handler: async ({ body }, reply) => {
      reply.type("application/json; charset=utf-8");
      return await answer(body);
    },
  });
  return [
    route("/tokenize", tokenize),
    route("/detokenize", detokenize),
    route("/apply-template", applyTemplate),
  ];
}

/** Of a long text there are a million, too many for one piece of the thread's time. */
function* jsonOf(tokens: Int32Array): Parts<string> {
  const parts: string[] = [];
  for (let start = 0; start < tokens.length; start += partLength) {
    parts.push(tokens.subarray(start, start + partLength).join(","));
    yield;
  }
  return `{"tokens":[${parts.join(",")}]}`;
}

function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [...bytes];
  }
}
