/** What the events of a Responses stream add up to. Pure; events that it does not know change nothing. */

export interface ResponseItemState {
  id?: string;
  type: string;
  [key: string]: unknown;
}

export interface ResponseState {
  id: string;
  status: string;
  output: readonly ResponseItemState[];
  /** As the server sent it: usage, error, model, … */
  [key: string]: unknown;
}

export interface ResponseEvent {
  type: string;
  sequence_number?: number;
  output_index?: number;
  content_index?: number;
  summary_index?: number;
  [key: string]: unknown;
}

type Part = { [key: string]: unknown };

/** Which field of an item, or of a part of it, grows with `<name>.delta` and is whole with `<name>.done`. */
const growing: Record<string, { parts?: "content" | "summary"; field: string }> = {
  "response.output_text": { parts: "content", field: "text" },
  "response.reasoning_text": { parts: "content", field: "text" },
  "response.refusal": { parts: "content", field: "refusal" },
  "response.reasoning_summary_text": { parts: "summary", field: "text" },
  "response.function_call_arguments": { field: "arguments" },
  "response.mcp_call_arguments": { field: "arguments" },
  "response.custom_tool_call_input": { field: "input" },
};

/** @param state null before the first event */
export function accumulateResponse(
  state: ResponseState | null,
  event: ResponseEvent,
): ResponseState | null {
  const response = event["response"] as Partial<ResponseState> | undefined;
  // The extended events name the response and say no more of it.
  if (Array.isArray(response?.output)) return response as ResponseState;
  if (state === null || event.output_index === undefined) return state;
  if (event.type === "response.output_item.added" || event.type === "response.output_item.done") {
    const output = [...state.output];
    output[event.output_index] = event["item"] as ResponseItemState;
    return { ...state, output };
  }
  const item = state.output[event.output_index];
  if (item === undefined) return state;
  const output = [...state.output];
  output[event.output_index] = updateItem(item, event);
  return { ...state, output };
}

/** The text of all messages. */
export function textOfResponse({ output }: Pick<ResponseState, "output">): string {
  return output
    .filter(({ type }) => type === "message")
    .flatMap((item) => item["content"] as Part[])
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .join("");
}

function updateItem(item: ResponseItemState, event: ResponseEvent): ResponseItemState {
  const { type, content_index: contentIndex = 0, summary_index: summaryIndex = 0 } = event;
  const part = event["part"] as Part | undefined;
  if (part !== undefined && type.startsWith("response.content_part."))
    return withPart(item, "content", contentIndex, part);
  if (part !== undefined && type.startsWith("response.reasoning_summary_part."))
    return withPart(item, "summary", summaryIndex, part);

  const dot = type.lastIndexOf(".");
  const target = growing[type.slice(0, dot)];
  if (target === undefined) return item;
  const { parts, field } = target;
  const grow = (whole: Part): Part => {
    if (type.slice(dot) !== ".delta") return { ...whole, [field]: event[field] };
    const text = `${String(whole[field] ?? "")}${String(event["delta"])}`;
    const { logprobs } = event;
    if (!Array.isArray(logprobs) || logprobs.length === 0) return { ...whole, [field]: text };
    const before = (whole["logprobs"] as unknown[] | undefined) ?? [];
    return { ...whole, [field]: text, logprobs: [...before, ...logprobs] };
  };
  if (parts === undefined) return grow(item) as ResponseItemState;
  const index = parts === "summary" ? summaryIndex : contentIndex;
  return withPart(item, parts, index, grow((item[parts] as Part[] | undefined)?.[index] ?? {}));
}

function withPart(
  item: ResponseItemState,
  parts: "content" | "summary",
  index: number,
  part: Part,
): ResponseItemState {
  const changed = [...((item[parts] as Part[] | undefined) ?? [])];
  changed[index] = part;
  return { ...item, [parts]: changed };
}
