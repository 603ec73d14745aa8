/** What a request gives the template. */

import type { TemplateVariables } from "../../chat/types.ts";
import { optional, type FieldTable } from "./field.ts";
import { fieldError, isAbsent } from "./fields.ts";
import { boolean, mapped, oneOf, record } from "./values.ts";

/** Of `chat_template_kwargs`, in characters of JSON: each is made a value of the template's at every rendering. */
const maxVariables = 64 * 1024;

export const reasoningEffort = oneOf(
  ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  "effort",
);

const variables = mapped(
  record('Send {"<name>": <value>}', {
    properties: { enable_thinking: boolean.schema },
  }),
  (given, path, reading): TemplateVariables => {
    const enabled = given["enable_thinking"];
    if (!isAbsent(enabled)) boolean.read(enabled, `${path}.enable_thinking`, reading);
    const size = JSON.stringify(given).length;
    if (size <= maxVariables) return given;
    const problem = `has ${size} characters as JSON`;
    throw fieldError("invalid_value", path, problem, `Send at most ${maxVariables}`);
  },
);

export const templateFields = {
  reasoning_effort: optional(
    reasoningEffort,
    "`none` and `minimal` switch thinking off, the others on; also goes to the model's template",
  ),
  chat_template_kwargs: optional(
    variables,
    "goes to the model's template; `enable_thinking` switches thinking on or off, whatever the template calls it",
    {},
  ),
} satisfies FieldTable;

/** What goes to the template: the effort under its own name, and the variables. */
export function templateVariables(
  effort: string | undefined,
  given: TemplateVariables,
): TemplateVariables {
  return effort === undefined ? given : { reasoning_effort: effort, ...given };
}
