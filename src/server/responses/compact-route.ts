import type { RouteOptions } from "fastify";
import type { ChatMessage } from "../../chat/types.ts";
import { type Answer, collectAnswer } from "../answer/collect-answer.ts";
import { newId } from "../answer/ids.ts";
import { runRequest } from "../answer/answer.ts";
import { resolveTarget, wantedModel } from "../answer/target.ts";
import { fieldError } from "../body/fields.ts";
import { requestOwner } from "../http/authentication.ts";
import { encodeSummary, summaryRequest } from "./compaction.ts";
import { parseResponsesRequest } from "./request.ts";
import type { ResponsesContext } from "./context.ts";
import { fitHistory } from "./truncation.ts";
import { wireResponseUsage } from "./usage.ts";

/** Of a request that sets no limit: longer would save too little. */
const maxSummaryTokens = 1024;

/** POST /v1/responses/compact: a conversation becomes its users' words and one summary, which the model writes. */
export function compactResponseRoute(context: ResponsesContext): RouteOptions {
  const { services, warnings, responses, active } = context;
  return {
    method: "POST",
    url: "/v1/responses/compact",
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const target = resolveTarget(wantedModel(request.body), context);
      const body = parseResponsesRequest(request.body, target, warnings.warn);
      if (body.model === null)
        throw fieldError("missing_field", "model", "is missing", "Send the model's name");
      const owner = requestOwner(request);
      const { items, messages, templateVariables } = await responses.prompt(body, owner, services);
      if (items.length === 0)
        throw fieldError("missing_field", "input", "is missing", "Send what is to be compacted");
      const count = (history: ChatMessage[]): Promise<number> =>
        target.chat.countPromptTokens({
          messages: withRequest(history),
          tools: [],
          templateVariables,
          owner,
        });
      const history = body.truncation === "auto" ? await fitHistory(messages, count) : messages;
      const conversation = {
        messages: withRequest(history),
        templateVariables,
        sampling: body.sampling,
        stop: [],
        maxTokens: Math.min(body.maxOutputTokens ?? maxSummaryTokens, target.contextSize),
        signal: active.signalFor(reply),
        owner,
      };
      const run = { ...context, target, log: request.log, startedAt };
      const answer = await collectAnswer(runRequest(conversation, { kind: "none" }, run));
      const users = items.filter((item) => item.type === "message" && item["role"] === "user");
      const summary = encodeSummary(summaryOf(answer));
      return {
        id: newId("resp"),
        object: "response.compaction",
        created_at: Math.floor(Date.now() / 1000),
        output: [...users, { id: newId("cmp"), type: "compaction", encrypted_content: summary }],
        usage: wireResponseUsage(answer.finish.usage),
      };
    },
  };
}

function withRequest(history: readonly ChatMessage[]): ChatMessage[] {
  return [...history, { role: "user", content: summaryRequest }];
}

/** It takes the place of the turns: there must be one. @throws FermataError invalid_value */
function summaryOf({ content, finish }: Answer): string {
  const summary = content.trim();
  if (summary !== "") return summary;
  if (finish.reason === "length") {
    const tokens = finish.usage.generatedTokens;
    const problem = `left no room for a summary: after ${tokens} tokens it had not begun`;
    const remedy = 'Send a larger one, less input, or "reasoning": {"effort": "none"}';
    throw fieldError("invalid_value", "max_output_tokens", problem, remedy);
  }
  const remedy = "Send it again with other sampling, or keep it as it is";
  throw fieldError("invalid_value", "input", "was answered with no summary", remedy);
}
