/** Calls that the client runs: of functions, whose arguments are JSON, and of custom tools, whose input is text. */

import { asWritten, exactJson, isJsonObject } from "../../../json.ts";
import { roundOf } from "../../answer/ids.ts";
import { notShown } from "../../body/content-parts.ts";
import type { CustomToolCallItem, FunctionCallItem, Item, OutputItem } from "../types.ts";

export type ClientCallItem = FunctionCallItem | CustomToolCallItem;

const outputTypes: Readonly<Record<string, string>> = {
  function_call: "function_call_output",
  custom_tool_call: "custom_tool_call_output",
};

export function isClientCall<Other extends { type: string }>(
  item: Other | ClientCallItem,
): item is ClientCallItem {
  return Object.hasOwn(outputTypes, item.type);
}

export function isClientOutput({ type }: Pick<Item, "type">): boolean {
  return type === "function_call_output" || type === "custom_tool_call_output";
}

/** The client approves a call that a response asked about. */
export function isConsent({ type, approve }: Item): boolean {
  return type === "mcp_approval_response" && approve === true;
}

/** In their order, and whether what answers them is there. */
export function callsOfItems(items: readonly Item[]): { id: string; hasResult: boolean }[] {
  const answered = new Set(items.filter(isClientOutput).map((item) => item["call_id"]));
  return items.flatMap((item) =>
    isClientCall(item) ? [{ id: item.call_id, hasResult: answered.has(item.call_id) }] : [],
  );
}

/** Type of the item that answers such a call. */
function outputTypeOf({ type }: ClientCallItem): string {
  return outputTypes[type] ?? "function_call_output";
}

/** What is told of it: arguments or input. */
export function textOfCall(item: ClientCallItem): string {
  return item.type === "custom_tool_call" ? item.input : item.arguments;
}

/**
 * What a response adds to its conversation: the output, with the outputs of calls that were answered meanwhile: they follow the last call of
 * their round, as the model read them. @param answers by call id
 */
export function transcriptOf(
  output: readonly OutputItem[],
  answers: ReadonlyMap<string, Item>,
): Item[] {
  const transcript: Item[] = [];
  let waiting: Item[] = [];
  let round = "";
  for (const item of output) {
    const isCall = isClientCall(item) || item.type === "mcp_call";
    if (waiting.length > 0 && !(isCall && roundOf(item.id) === round)) {
      transcript.push(...waiting);
      waiting = [];
    }
    transcript.push({ ...item });
    if (!isClientCall(item)) continue;
    round = roundOf(item.id);
    const answer = answers.get(item.call_id);
    if (answer !== undefined) waiting.push({ ...answer, type: outputTypeOf(item) });
  }
  return [...transcript, ...waiting];
}

const textTypes = new Set(["input_text", "output_text", "text"]);

/** A tool's result as clients send it: text stays; parts stay parts; any other value becomes its JSON. */
export function outputOf(value: unknown): unknown {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return value;
  return exactJson(asWritten(value));
}

/** What the model reads of it. */
export function outputText(output: unknown): string {
  if (typeof output === "string") return output;
  if (!Array.isArray(output)) return "";
  return output.map(partText).join("\n");
}

function isPart(part: unknown): boolean {
  if (!isJsonObject(part) || typeof part["type"] !== "string") return false;
  return textTypes.has(part["type"])
    ? typeof part["text"] === "string"
    : part["type"] === "input_image" || part["type"] === "input_file";
}

/** The model reads text only, and should know that there was something else. */
function partText(part: unknown): string {
  const { type, text, filename } = part as { type: string; text?: string; filename?: unknown };
  if (textTypes.has(type)) return text ?? "";
  if (type === "input_image") return notShown("an image");
  const name = typeof filename === "string" ? ` ${filename}` : "";
  return notShown(`a file${name}`);
}
