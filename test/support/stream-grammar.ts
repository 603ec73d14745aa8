/**
 * What a stream of the Responses API must be, written from OpenAI's documentation and not from the
 * server's code: a state machine that reads every event and throws at the first that is wrong.
 */

type Json = Record<string, unknown>;

export interface StreamEvent extends Json {
  type: string;
  sequence_number: number;
}

/** What may come next inside of an item, by its type and what came last. */
const inside: Record<string, Record<string, string[]>> = {
  message: {
    added: ["content_part.added"],
    "content_part.added": ["output_text.delta", "output_text.done"],
    "output_text.delta": ["output_text.delta", "output_text.done"],
    "output_text.done": ["content_part.done"],
    "content_part.done": ["done"],
  },
  reasoning: {
    added: ["content_part.added"],
    "content_part.added": ["reasoning_text.delta", "reasoning_text.done"],
    "reasoning_text.delta": ["reasoning_text.delta", "reasoning_text.done"],
    "reasoning_text.done": ["content_part.done"],
    "content_part.done": ["done"],
  },
  function_call: {
    added: ["function_call_arguments.delta", "done"],
    "function_call_arguments.delta": [
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "done",
    ],
    "function_call_arguments.done": ["done"],
  },
  custom_tool_call: {
    added: ["custom_tool_call_input.delta", "custom_tool_call_input.done", "done"],
    "custom_tool_call_input.delta": [
      "custom_tool_call_input.delta",
      "custom_tool_call_input.done",
      "done",
    ],
    "custom_tool_call_input.done": ["done"],
  },
  mcp_call: {
    added: ["mcp_call.in_progress"],
    "mcp_call.in_progress": ["mcp_call_arguments.delta", "done"],
    "mcp_call_arguments.delta": ["mcp_call_arguments.delta", "mcp_call_arguments.done", "done"],
    "mcp_call_arguments.done": ["mcp_call.completed", "mcp_call.failed", "done"],
    "mcp_call.completed": ["done"],
    "mcp_call.failed": ["done"],
  },
  mcp_list_tools: {
    added: ["mcp_list_tools.in_progress"],
    "mcp_list_tools.in_progress": ["mcp_list_tools.completed", "mcp_list_tools.failed"],
    "mcp_list_tools.completed": ["done"],
    "mcp_list_tools.failed": ["done"],
  },
  mcp_approval_request: { added: ["done"] },
};

const terminals = new Set(["response.completed", "response.incomplete", "response.failed"]);
const statusOf: Record<string, string[]> = {
  "response.completed": ["completed"],
  "response.incomplete": ["incomplete", "cancelled"],
  "response.failed": ["failed"],
};

interface Open {
  item: Json;
  last: string;
  /** All deltas so far. */
  text: string;
  done: Json | null;
}

export class StreamGrammar {
  #count = 0;
  #id: unknown;
  #items: Open[] = [];
  #end: StreamEvent | null = null;
  #isRefused = false;
  /** Of an extended event whose standard one has not come. */
  #extendedDelta: unknown;

  /** The last event's response. */
  get response(): Json {
    return (this.#end?.["response"] ?? {}) as Json;
  }

  read(event: StreamEvent): void {
    const { type } = event;
    const check = (condition: boolean, problem: string): void => {
      if (!condition) throw new Error(`event ${this.#count} ${type}: ${problem}`);
    };
    check(this.#end === null, "comes after the end");
    check(event.sequence_number === this.#count, `has number ${event.sequence_number}`);
    if (this.#count === 0) check(type === "response.created", "is first");
    if (this.#count === 1) check(type === "response.in_progress", "is second");
    this.#count++;
    if (type === "response.created" || type === "response.in_progress") {
      const response = event["response"] as Json;
      this.#id ??= response["id"];
      check(response["id"] === this.#id, "changes the id");
      check((response["output"] as unknown[]).length === 0, "has output");
      return;
    }
    if (type === "error") {
      check(this.#items.length === 0, "comes after output");
      this.#isRefused = true;
      return;
    }
    check(!this.#isRefused || type === "response.failed", "comes after the error");
    if (terminals.has(type)) return this.#finish(event, check);
    if (type === "response.tool_call.delta" || type === "response.tool_call.completed") {
      this.#extendedDelta = event["delta"];
      check((event["response"] as Json)["id"] === this.#id, "is of another response");
      return;
    }
    this.#readItem(event, check);
  }

  /** No more will come. */
  close(): void {
    if (this.#end === null) throw new Error("the stream ended without a last event");
  }

  #readItem(event: StreamEvent, check: (condition: boolean, problem: string) => void): void {
    const index = event["output_index"] as number;
    if (event.type === "response.output_item.added") {
      check(index === this.#items.length, `adds item ${index} after ${this.#items.length} items`);
      const item = event["item"] as Json;
      check(typeof item["id"] === "string" && item["id"] !== "", "has no id");
      check(!this.#items.some((open) => open.item["id"] === item["id"]), "uses an id twice");
      check(inside[String(item["type"])] !== undefined, `adds a ${String(item["type"])}`);
      this.#items.push({ item, last: "added", text: "", done: null });
      return;
    }
    const open = this.#items[index];
    check(open !== undefined && open.done === null, `is for item ${index}, which is not open`);
    const { item, last } = open!;
    const isDone = event.type === "response.output_item.done";
    const name = isDone ? "done" : event.type.replace("response.", "");
    const allowed = inside[String(item["type"])]![last] ?? [];
    check(allowed.includes(name), `follows ${last} of a ${String(item["type"])}`);
    open!.last = name;
    if (isDone) {
      this.#closeItem(open!, event["item"] as Json, check);
      return;
    }
    check(event["item_id"] === item["id"], "names another item");
    if (name.includes("text") || name.startsWith("content_part"))
      check(event["content_index"] === 0, "names another part");
    if (name.endsWith(".delta")) {
      check(event["delta"] !== "", "is empty");
      open!.text += String(event["delta"]);
      const expected = this.#extendedDelta ?? event["delta"];
      check(event["delta"] === expected, "does not fit the extended event before it");
      this.#extendedDelta = undefined;
    }
    if (name.endsWith("text.done"))
      check(event["text"] === open!.text, "is not what the deltas say");
    if (name.endsWith("arguments.done")) {
      check(event["arguments"] === open!.text, "is not what the deltas say");
      JSON.parse(open!.text);
    }
    if (name === "custom_tool_call_input.done")
      check(event["input"] === open!.text, "is not what the deltas say");
    if (name === "content_part.done")
      check((event["part"] as Json)["text"] === open!.text, "is not what the deltas say");
  }

  #closeItem(open: Open, item: Json, check: (condition: boolean, problem: string) => void): void {
    for (const key of ["id", "type", "call_id", "name", "server_label"])
      check(item[key] === open.item[key], `changes ${key}`);
    check(item["status"] !== "in_progress", "is in progress");
    const said =
      item["arguments"] ?? item["input"] ?? (item["content"] as Json[] | undefined)?.[0]?.["text"];
    if (item["type"] !== "mcp_approval_request")
      check((said ?? "") === open.text, "is not what the deltas say");
    open.done = item;
  }

  #finish(event: StreamEvent, check: (condition: boolean, problem: string) => void): void {
    const response = event["response"] as Json;
    check(response["id"] === this.#id, "changes the id");
    check(statusOf[event.type]!.includes(String(response["status"])), "has another status");
    const output = response["output"] as Json[];
    check(output.length === this.#items.length, "has more or fewer items than were added");
    for (const [index, { done, item }] of this.#items.entries()) {
      if (done === null) {
        // Only calls that nobody answered may be left.
        check(event.type !== "response.completed", `leaves item ${index} open`);
        const isCall = ["function_call", "custom_tool_call"].includes(String(item["type"]));
        check(isCall, `leaves item ${index} open`);
        check(output[index]!["status"] === "in_progress", "closed an item in silence");
      } else {
        check(
          JSON.stringify(output[index]) === JSON.stringify(done),
          `has another item ${index} than its done event`,
        );
      }
    }
    if (response["status"] === "completed")
      check(
        typeof response["completed_at"] === "number" && response["usage"] !== null,
        "has no end",
      );
    if (response["status"] === "failed") check(response["error"] !== null, "has no error");
    this.#end = event;
  }
}
