/** Items that change what follows them in a conversation: `additional_tools` and `configuration_update`. */

import type { DocumentFormat } from "../../../guidance/types.ts";
import { fieldError, optional, required, type Type } from "../../body/field.ts";
import { type documentOf, type guidanceOf, textFormat } from "../../body/guidance.ts";
import { reasoningEffort, type templateVariables } from "../../body/prompt.ts";
import { mapped, notNull, object } from "../../body/values.ts";
import { type RequestedTool, responseTools } from "../tools/tools.ts";
import type { Item } from "../types.ts";
import type { JsonObject } from "../../../json.ts";

/** With what the response repeats: of a schema all keys, as at OpenAI. */
export const echoedFormat: Type<{ wire: JsonObject; document: DocumentFormat | null }> = {
  ...textFormat,
  read(value, path, reading) {
    const document = textFormat.read(value, path, reading);
    const given = value as JsonObject;
    const isSchema = document?.kind === "json_schema";
    return { document, wire: isSchema ? { description: null, strict: false, ...given } : given };
  },
};

/** As the item keeps them, without credentials. A server of the request's own could not be called in later turns. */
const keptTools = mapped(notNull(responseTools), ({ tools, wire }, path) => {
  const own = tools.find((tool) => tool.kind === "mcp" && tool.address !== null);
  if (own === undefined) return wire;
  const field = `${own.kind === "mcp" ? own.field : path}.server_url`;
  const problem = "is not supported in additional_tools: its credentials are not stored";
  throw fieldError("unsupported_value", field, problem, "Send the server in tools");
});

export const additionalToolsFields = { tools: required(keptTools) };

const showUpdate = 'Send {"reasoning": {"effort": …}} or {"text": {"format": …}}';
const format = mapped(echoedFormat, ({ wire }) => wire);

export const updateFields = {
  reasoning: optional(object({ effort: optional(reasoningEffort) }, showUpdate, "passed over")),
  text: optional(object({ format: required(notNull(format)) }, showUpdate, "passed over")),
};

/** What they change of a request, and what that depends on. */
interface Changeable {
  input: readonly Item[];
  compacts: boolean;
  tools: { tools: RequestedTool[]; wire: JsonObject[] } | null;
  templateVariables: ReturnType<typeof templateVariables>;
  reasoning: { effort: string | null; summary: string | null };
  textFormat: JsonObject;
  guidance: ReturnType<typeof guidanceOf>;
  constraint: ReturnType<typeof documentOf>;
}

/**
 * The request as these items change it: of tools of one name, and of updates, the last one holds.
 * @throws FermataError of status 400: a form contradicts what the request asks for
 */
export function withSettings<Request extends Changeable>(
  request: Request,
  settings: readonly Item[],
): Request {
  const changed = { ...request };
  for (const item of settings) {
    const index = request.input.indexOf(item);
    const path = index < 0 ? "input" : `input[${index}]`;
    if (item.type === "additional_tools") addTools(changed, item, `${path}.tools`);
    else update(changed, item, `${path}.text.format`);
  }
  return changed;
}

/** The item was checked when it came. */
const silent = { warn: () => {} };

function addTools(request: Changeable, item: Item, path: string): void {
  // A summary is text, whatever the turns were allowed to be.
  if (request.compacts) return;
  const { tools = [], wire = [] } = request.tools ?? {};
  const byName = new Map(tools.map((tool) => [nameOf(tool), tool]));
  for (const tool of responseTools.read(item["tools"], path, silent).tools)
    byName.set(nameOf(tool), tool);
  request.tools = { tools: [...byName.values()], wire };
}

function nameOf(tool: RequestedTool): string {
  return tool.kind === "mcp" ? `mcp ${tool.server}` : tool.definition.name;
}

function update(request: Changeable, item: Item, path: string): void {
  const { reasoning, text } = item as ReturnType<typeof updateOf>;
  if (reasoning?.effort !== undefined) {
    const { effort } = reasoning;
    request.templateVariables = { ...request.templateVariables, reasoning_effort: effort };
    request.reasoning = { ...request.reasoning, effort };
  }
  if (text === undefined) return;
  const { document, wire } = echoedFormat.read(text.format, path, silent);
  const { constraint } = request;
  if (document !== null && constraint !== undefined) {
    const problem = "contradicts a field of the request that also sets a form";
    throw fieldError("invalid_value", path, problem, "Send one of the two");
  }
  const { document: _, ...guidance } = request.guidance;
  const form = document ?? constraint;
  request.guidance = { ...guidance, ...(form === undefined ? {} : { document: form }) };
  request.textFormat = wire;
}

/** The item of the fields that were given. @throws FermataError missing_field: there is none */
export function updateOf(
  given: {
    reasoning?: { effort?: string | undefined } | undefined;
    text?: { format: JsonObject } | undefined;
  },
  path: string,
) {
  const { reasoning, text } = given;
  if (reasoning !== undefined || text !== undefined)
    return { ...(reasoning && { reasoning }), ...(text && { text }) };
  throw fieldError("missing_field", path, "has neither reasoning nor text", showUpdate);
}
