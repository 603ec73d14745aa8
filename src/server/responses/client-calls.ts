/** Calls that the client runs: of functions, whose arguments are JSON, and of custom tools, whose input is text. */

import type { CustomToolCallItem, FunctionCallItem, Item } from "./types.ts";

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

/** In their order, and whether what answers them is there. */
export function callsOfItems(items: readonly Item[]): { id: string; hasResult: boolean }[] {
  const answered = new Set(items.filter(isClientOutput).map((item) => item["call_id"]));
  return items.flatMap((item) =>
    isClientCall(item) ? [{ id: item.call_id, hasResult: answered.has(item.call_id) }] : [],
  );
}

/** Type of the item that answers such a call. */
export function outputTypeOf({ type }: ClientCallItem): string {
  return outputTypes[type] ?? "function_call_output";
}

/** What is told of it: arguments or input. */
export function textOfCall(item: ClientCallItem): string {
  return item.type === "custom_tool_call" ? item.input : item.arguments;
}

/** The model knows a custom tool as a function with one string: the arguments that have `input`. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}
