/** POST /tokenize, /detokenize and /apply-template, as llama-server has them. */

import type { RouteOptions } from "fastify";
import { conversationOf, templateVariables } from "../body/prompt.ts";
import { readBody, readFields, expectBody, fieldError } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { detokenizeFields, templateBodyFields, tokenizeFields } from "./fields.ts";

/** Each is an object: of as many as a body may have, memory would not hold them. */
const maxPieces = 200_000;

/** A piece that is no UTF-8 by itself is an array of bytes. */
interface TokenPiece {
  id: number;
  piece: string | number[];
}

export function tokenRoutes({ services, warnings }: RouteContext): RouteOptions[] {
  const { engine, chat, model } = services;
  const { warn } = warnings;
  const { vocabularySize } = model;

  const tokenize = async (body: unknown): Promise<{ tokens: number[] | TokenPiece[] }> => {
    const given = readBody(tokenizeFields, body, { warn }, 'Send {"content": "…"}');
    const { content, add_special: addSpecial, parse_special: parseSpecial } = given;
    const { text, guard } = parseSpecial ? { text: content, guard: "" } : chat.guardText(content);
    const tokens = await engine.tokenize(text, guard, addSpecial && engine.model.addBos);
    if (!given.with_pieces) return { tokens: [...tokens] };
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

  const detokenize = (body: unknown): { content: string } => {
    const reading = { warn, vocabularySize };
    const { tokens } = readBody(detokenizeFields, body, reading, 'Send {"tokens": […]}');
    return { content: tokens.length === 0 ? "" : engine.detokenize(tokens) };
  };

  /** The prompt that a chat completion would begin with: of its body, what goes into the prompt. */
  const applyTemplate = async (body: unknown): Promise<{ prompt: string }> => {
    expectBody(body, 'Send {"messages": […]}');
    const given = readFields(templateBodyFields, body, { warn });
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
    handler: async ({ body }) => answer(body),
  });
  return [
    route("/tokenize", tokenize),
    route("/detokenize", detokenize),
    route("/apply-template", applyTemplate),
  ];
}

function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [...bytes];
  }
}
