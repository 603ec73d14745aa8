/** Every documented chat-completions parameter that has no effect here, and what is done about it. */

import { fieldError, isAbsent, isObject, type JsonObject } from "./fields.ts";
import type { Warn } from "./warnings.ts";

/** Read by parse-request.ts and the parsers it calls. */
const supported = new Set([
  "model",
  "messages",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "seed",
  "stop",
  "frequency_penalty",
  "presence_penalty",
  "logit_bias",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
]);

/** Harmless without effect: accepted with one warning. A `quiet` value asks for what happens anyway. */
const ignored = new Map<string, { why: string; quiet?: (value: unknown) => boolean }>([
  ["user", { why: "is not used" }],
  ["safety_identifier", { why: "is not used" }],
  ["metadata", { why: "is not stored" }],
  [
    "store",
    { why: "has no effect: chat completions are not stored", quiet: (value) => value === false },
  ],
  [
    "service_tier",
    { why: "has no effect", quiet: (value) => value === "auto" || value === "default" },
  ],
  ["prompt_cache_key", { why: "is not needed: prefixes are found by their tokens" }],
  ["prompt_cache_options", { why: "has no effect" }],
  ["prompt_cache_retention", { why: "has no effect" }],
  ["prediction", { why: "has no effect" }],
  ["reasoning_effort", { why: "has no effect: the model's template decides" }],
  ["verbosity", { why: "has no effect" }],
]);

interface Refusal {
  accepts: (value: unknown) => boolean;
  problem: string;
  remedy: string;
}

/** A reply without them would not be what was asked for: refused. */
const refused = new Map<string, Refusal>([
  [
    "n",
    {
      accepts: (value) => value === 1,
      problem: "must be 1",
      remedy: "Send one request per answer",
    },
  ],
  [
    "logprobs",
    {
      accepts: (value) => value === false,
      problem: "is not supported yet",
      remedy: "Leave it out",
    },
  ],
  [
    "top_logprobs",
    { accepts: (value) => value === 0, problem: "is not supported yet", remedy: "Leave it out" },
  ],
  [
    "response_format",
    {
      accepts: (value) => isObject(value) && value["type"] === "text",
      problem: "needs guided decoding, which is not supported yet",
      remedy: 'Send {"type": "text"} or leave it out',
    },
  ],
  [
    "parallel_tool_calls",
    {
      accepts: (value) => value === true,
      problem:
        "must be true: a limit of one call needs guided decoding, which is not supported yet",
      remedy: "Leave it out",
    },
  ],
  [
    "modalities",
    {
      accepts: (value) => Array.isArray(value) && value.length === 1 && value[0] === "text",
      problem: "asks for more than text",
      remedy: 'Send ["text"] or leave it out',
    },
  ],
  ["audio", never("asks for audio, and the model writes text only", "Leave it out")],
  [
    "web_search_options",
    never("asks for a web search, which is not built in", "Offer a search tool in tools"),
  ],
  ["moderation", never("is not supported", "Leave it out")],
  ["functions", never("was replaced", "Send tools")],
  ["function_call", never("was replaced", "Send tool_choice")],
]);

function never(problem: string, remedy: string): Refusal {
  return { accepts: () => false, problem, remedy };
}

/** No key passes in silence: known without effect, or unknown, it is warned about or refused. */
export function checkParameters(body: JsonObject, warn: Warn): void {
  for (const [key, value] of Object.entries(body)) {
    if (supported.has(key) || isAbsent(value)) continue;
    const refusal = refused.get(key);
    const harmless = ignored.get(key);
    if (refusal !== undefined) {
      if (!refusal.accepts(value))
        throw fieldError("unsupported_value", key, refusal.problem, refusal.remedy);
    } else if (harmless === undefined) {
      warn(key, "is unknown and ignored");
    } else if (harmless.quiet?.(value) !== true) {
      warn(key, harmless.why);
    }
  }
}
