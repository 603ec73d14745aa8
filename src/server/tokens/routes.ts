/** POST /tokenize and /detokenize. */

import type { RouteOptions } from "fastify";
import { expectBody, fieldError, kindOf, readBoolean } from "../body/fields.ts";
import { parseTokens } from "../body/token-ids.ts";
import type { ServerServices } from "../services.ts";

/** Each is an object: of as many as a body may have, memory would not hold them. */
const maxPieces = 200_000;

/** A piece that is no UTF-8 by itself is an array of bytes. */
interface TokenPiece {
  id: number;
  piece: string | number[];
}

/** POST /tokenize, as llama-server has it. */
export function tokenizeRoute({ engine, chat }: ServerServices): RouteOptions {
  return {
    method: "POST",
    url: "/tokenize",
    handler: async ({ body }): Promise<{ tokens: number[] | TokenPiece[] }> => {
      const remedy = 'Send {"content": "…"}';
      expectBody(body, remedy);
      const content = body["content"];
      if (typeof content !== "string") {
        const code = content === undefined ? "missing_field" : "invalid_type";
        throw fieldError(code, "content", `must be a string, not ${kindOf(content)}`, remedy);
      }
      const addSpecial = readBoolean(body, "add_special", false);
      const parseSpecial = readBoolean(body, "parse_special", true);
      const withPieces = readBoolean(body, "with_pieces", false);
      const { text, guard } = parseSpecial ? { text: content, guard: "" } : chat.guardText(content);
      const tokens = await engine.tokenize(text, guard, addSpecial && engine.model.addBos);
      if (!withPieces) return { tokens: [...tokens] };
      if (tokens.length > maxPieces) {
        const problem = `has ${tokens.length} tokens, and ${maxPieces} are the most with their pieces`;
        throw fieldError("invalid_value", "content", problem, "Send less or leave out with_pieces");
      }
      return {
        tokens: Array.from(tokens, (id) => ({ id, piece: pieceOf(engine.tokenBytes(id)) })),
      };
    },
  };
}

function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [...bytes];
  }
}

/** POST /detokenize, as llama-server has it. */
export function detokenizeRoute({ engine, model }: ServerServices): RouteOptions {
  return {
    method: "POST",
    url: "/detokenize",
    handler: async ({ body }): Promise<{ content: string }> => {
      const remedy = 'Send {"tokens": […]}';
      expectBody(body, remedy);
      const { tokens } = body;
      if (tokens === undefined) throw fieldError("missing_field", "tokens", "is missing", remedy);
      if (Array.isArray(tokens) && tokens.length === 0) return { content: "" };
      return { content: engine.detokenize(parseTokens(tokens, "tokens", model.vocabularySize)) };
    },
  };
}
