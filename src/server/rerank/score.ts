/** POST /v1/score, as vLLM has it: how well texts answer others, pair by pair. */

import type { Route } from "../route.ts";
import { answer, choice, list, real, string, whole } from "../body/shapes.ts";
import { randomBytes } from "node:crypto";
import type { RankedGroup } from "../../engine/reranker.ts";
import { rerankerOf, warnOfName } from "../answer/other-models.ts";
import { fieldError, readBody } from "../body/field.ts";
import type { RouteContext } from "../context.ts";
import { scoreFields } from "./fields.ts";

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
