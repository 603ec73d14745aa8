/** Every documented parameter of a message that has no effect here, and what is done about it. */

import { fieldError, isAbsent, isObject, type JsonObject } from "../openai/fields.ts";
import type { Warn } from "../openai/warnings.ts";

/** Read by parse-request.ts and the parsers it calls. */
const supported = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stop_sequences",
  "stream",
  "temperature",
  "top_p",
  "top_k",
  "tools",
  "tool_choice",
  "thinking",
]);

/** Harmless without effect: accepted with one warning, or none where nothing is lost. */
const ignored = new Map<string, string | null>([
  ["metadata", null],
  ["cache_control", null],
  ["service_tier", null],
  ["betas", null],
  ["anthropic_beta", null],
  ["anthropic_version", null],
  ["inference_geo", "has no effect: everything runs here"],
  ["speed", "has no effect"],
  ["diagnostics", "has no effect"],
  ["context_management", "has no effect: history is read as it is sent"],
  ["user_profile_id", "is not used"],
  ["workspace_id", "is not used"],
]);

/** No key passes in silence: known without effect, or unknown, it is warned about or refused. */
export function checkParameters(body: JsonObject, warn: Warn): void {
  for (const [key, value] of Object.entries(body)) {
    if (supported.has(key) || isAbsent(value)) continue;
    if (key === "thread") {
      const problem = "asks for a history that is kept here, which is not supported";
      throw fieldError("unsupported_value", key, problem, "Send the whole history in messages");
    }
    if (key === "container" || key === "mcp_servers") {
      if (Array.isArray(value) && value.length === 0) continue;
      const problem = "asks for what Anthropic's servers run";
      throw fieldError("unsupported_value", key, problem, "Offer tools in tools");
    }
    if (key === "output_config" || key === "output_format") {
      checkOutput(key, value, warn);
      continue;
    }
    const why = ignored.get(key);
    if (why === undefined) warn(key, "is unknown and ignored");
    else if (why !== null) warn(key, why);
  }
}

function checkOutput(key: string, value: unknown, warn: Warn): void {
  const hasFormat = key === "output_format" || (isObject(value) && !isAbsent(value["format"]));
  if (hasFormat) {
    const problem = "needs guided decoding, which is not supported yet";
    const field = key === "output_format" ? key : `${key}.format`;
    throw fieldError("unsupported_value", field, problem, "Leave it out");
  }
  warn(key, "has no effect");
}
