/** POST /v1/rerank, as Jina, Cohere and llama-server have it; with `texts` as text-embeddings-inference. */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { fieldError, readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { rerankFields } from "./fields.ts";

/** llama-server has these, with and without /v1. */
const rerankPaths = ["/v1/rerank", "/v1/reranking"];

export function rerankRoutes(context: RouteContext): RouteOptions[] {
  return rerankPaths.map((url) => rerankRoute(url, context));
}

function rerankRoute(url: string, { services, active, warnings }: RouteContext): RouteOptions {
  const { reranker } = services;
  return {
    method: "POST",
    url,
    handler: async ({ body }, reply) => {
      if (reranker === undefined)
        throw new FermataError(
          "unsupported_value",
          `"model" ranks nothing: ${services.model.id} generates text. Start the server with --rerank-model FILE.`,
          { param: "model" },
        );
      const { warn } = warnings;
      const example = 'Send {"query": "…", "documents": ["…"]}';
      const request = readBody(rerankFields, body, { warn }, example);
      const { query, texts, model } = request;
      const documents = texts ?? request.documents?.map(textOf);
      if (documents === undefined)
        throw fieldError("missing_field", "documents", "is missing", example);
      if (model !== undefined && model !== reranker.id)
        warn(`model=${model}`, `names a model that does not rank here; ${reranker.id} answers`);
      const signal = active.signalFor(reply);
      const { scores, tokenCount } = await reranker.rank(query, documents, signal);
      const best = scores
        .map((score, index) => ({ score, index }))
        .toSorted((a, b) => b.score - a.score)
        .slice(0, request.top_n);
      if (texts !== undefined)
        return best.map(({ score, index }) => ({
          index,
          score,
          ...(request.return_text ? { text: texts[index] } : {}),
        }));
      return {
        model: reranker.id,
        object: "list",
        usage: { prompt_tokens: tokenCount, total_tokens: tokenCount },
        results: best.map(({ score, index }) => ({
          index,
          relevance_score: score,
          ...(request.return_documents ? { document: { text: documents[index] } } : {}),
        })),
      };
    },
  };
}

function textOf(document: string | { text?: string | undefined }, index: number): string {
  if (typeof document === "string") return document;
  if (document.text !== undefined) return document.text;
  const path = `documents[${index}].text`;
  throw fieldError("missing_field", path, "is missing", 'Send {"text": "…"}');
}
