/** POST /v1/rerank, as Jina, Cohere and llama-server have it, with `texts` as text-embeddings-inference; POST /v1/score, as vLLM has it. */

import { answer, choice, list, oneOf, real, string, whole } from "../body/shapes.ts";
import type { Route } from "../route.ts";
import { randomBytes } from "node:crypto";
import { rerankerOf, warnOfName } from "../answer/model-use.ts";
import { fieldError, readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { rerankFields, scoreFields } from "./fields.ts";
import type { RankedGroup } from "../../engine/reranker.ts";

/** llama-server has the first two, with and without /v1; Cohere's newer clients ask at the last. */
const addresses = ["POST /v1/rerank", "POST /v1/reranking", "POST /v2/rerank"] as const;

const ranking = oneOf(
  answer({
    id: string,
    model: string,
    object: choice("list"),
    usage: answer({ prompt_tokens: whole, total_tokens: whole }),
    results: list(
      answer({ index: whole, relevance_score: real }, { document: answer({ text: string }) }),
    ),
  }),
  // Of a request with `texts`.
  list(answer({ index: whole, score: real }, { text: string })),
);

export function rerankRoutes(context: RouteContext): Route[] {
  return addresses.map((at) => rerankRoute(at, context));
}

function rerankRoute(at: Route["at"], context: RouteContext): Route {
  const { active, warnings } = context;
  return {
    at,
    summary: "How well documents answer a query, the best first, if a model that ranks is loaded.",
    request: rerankFields,
    example: { query: "Where is the key?", documents: ["Under the mat.", "It rains."] },
    answer: ranking,
    handler: async ({ body }, reply) => {
      const { warn } = warnings;
      const example = 'Send {"query": "…", "documents": ["…"]}';
      const request = readBody(rerankFields, body, { warn }, example);
      const reranker = rerankerOf(context);
      warnOfName(request.model, reranker, "rank", context);
      const { query, texts } = request;
      const documents = texts ?? request.documents?.map(textOf);
      if (documents === undefined)
        throw fieldError("missing_field", "documents", "is missing", example);
      const signal = active.signalFor(reply);
      const sent = texts === undefined ? "documents" : "texts";
      const field = (index: number): string => `${sent}[${index}]`;
      const { scores, tokenCount } = await reranker.rank([{ query, documents }], field, {
        documentTokens: request.max_tokens_per_doc,
        truncate: request.truncate,
        signal,
      });
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
        id: `rerank-${randomBytes(12).toString("hex")}`,
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

export function scoreRoute(context: RouteContext): Route {
  const { active, warnings } = context;
  return {
    at: "POST /v1/score",
    summary: "How well texts answer others, pair by pair, if a model that ranks is loaded.",
    request: scoreFields,
    example: { text_1: "Where is the key?", text_2: ["Under the mat.", "It rains."] },
    answer: answer({
      id: string,
      object: choice("list"),
      created: whole,
      model: string,
      data: list(answer({ index: whole, object: choice("score"), score: real })),
      usage: answer({ prompt_tokens: whole, total_tokens: whole, completion_tokens: whole }),
    }),
    handler: async ({ body }, reply) => {
      const { warn } = warnings;
      const example = 'Send {"text_1": "…", "text_2": ["…"]}';
      const given = readBody(scoreFields, body, { warn }, example);
      const reranker = rerankerOf(context);
      warnOfName(given.model, reranker, "rank", context);
      const { text_1: first, text_2: second } = given;
      const signal = active.signalFor(reply);
      const field = (index: number): string =>
        typeof second === "string" ? "text_2" : `text_2[${index}]`;
      const groups = groupsOf(textsOf(first), textsOf(second));
      const { scores, tokenCount: tokens } = await reranker.rank(groups, field, { signal });
      return {
        id: `score-${randomBytes(12).toString("hex")}`,
        object: "list",
        created: Math.floor(Date.now() / 1000),
        model: reranker.id,
        data: scores.map((score, index) => ({ index, object: "score", score })),
        usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0 },
      };
    },
  };
}

/** One text with each of the others, or the texts of two lists with each other. @throws FermataError invalid_value */
function groupsOf(first: readonly string[], second: readonly string[]): RankedGroup[] {
  if (first.length === 1) return [{ query: first[0]!, documents: second }];
  if (first.length === second.length)
    return first.map((query, index) => ({ query, documents: [second[index]!] }));
  const problem = `has ${second.length} texts, and text_1 has ${first.length}`;
  const remedy = "Send as many, or one text_1";
  throw fieldError("invalid_value", "text_2", problem, remedy);
}

function textsOf(given: string | readonly string[]): readonly string[] {
  return typeof given === "string" ? [given] : given;
}
