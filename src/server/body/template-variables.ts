/** What a request gives the template. */

import type { TemplateVariables } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "./fields.ts";

/** Of `chat_template_kwargs`, in characters of JSON: each is made a value of the template's at every rendering. */
const maxVariables = 64 * 1024;

const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** What goes to the template: `reasoning_effort` under its own name, and whatever is in `chat_template_kwargs`. */
export function readTemplateVariables(
  body: JsonObject,
  effort = body["reasoning_effort"],
  effortField = "reasoning_effort",
): TemplateVariables {
  const { chat_template_kwargs: variables } = body;
  if (!isAbsent(variables) && !isObject(variables)) {
    const problem = `must be an object, not ${kindOf(variables)}`;
    const remedy = 'Send {"<name>": <value>}';
    throw fieldError("invalid_type", "chat_template_kwargs", problem, remedy);
  }
  const enabled = variables?.["enable_thinking"];
  if (!isAbsent(enabled) && typeof enabled !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(enabled)}`;
    const field = "chat_template_kwargs.enable_thinking";
    throw fieldError("invalid_type", field, problem, "Send true or false");
  }
  const size = isAbsent(variables) ? 0 : JSON.stringify(variables).length;
  if (size > maxVariables) {
    const remedy = `Send at most ${maxVariables}`;
    const problem = `has ${size} characters as JSON`;
    throw fieldError("invalid_value", "chat_template_kwargs", problem, remedy);
  }
  if (isAbsent(effort)) return variables ?? {};
  if (typeof effort !== "string" || !reasoningEfforts.includes(effort)) {
    const code = typeof effort === "string" ? "invalid_value" : "invalid_type";
    const remedy = `Send one of ${reasoningEfforts.join(", ")}`;
    throw fieldError(code, effortField, "is not a known effort", remedy);
  }
  return { reasoning_effort: effort, ...variables };
}
