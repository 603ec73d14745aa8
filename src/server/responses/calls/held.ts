/** Calls of one response whose outputs the client posts while the generation is held. */

import type { ToolDefinition } from "../../../chat/types.ts";
import { FermataError } from "../../../errors.ts";
import { longestDelayMs } from "../../../waits.ts";
import { newId } from "../../answer/ids.ts";
import { readBody, required, type FieldTable, fieldError } from "../../body/field.ts";
import { either, list, mapped, object, text } from "../../body/values.ts";
import type { Warn } from "../../body/warnings.ts";
import { isClientOutput, outputText } from "./client-calls.ts";
import type { Item } from "../types.ts";
import type { Tool, ToolResult } from "../../../tools/types.ts";
import { clientServer } from "../../answer/answer.ts";

/** How long a response waits for its client's outputs, where the server's options say nothing. */
export const defaultOutputTimeoutMs = 300_000;

interface HeldCall {
  /** Null: not posted yet. */
  output: Item | null;
  /** The output is stored, so the call may end: no process finds its end without the output. */
  isKept: boolean;
  answer: ((result: ToolResult) => void) | null;
}

const defaultMaxBytes = 1024 * 1024;

export class HeldCalls {
  readonly timeoutMs: number;
  readonly #calls = new Map<string, HeldCall>();
  readonly #onTimeout: (error: FermataError) => void;

  constructor(timeoutMs: number, onTimeout: (error: FermataError) => void) {
    this.timeoutMs = timeoutMs;
    this.#onTimeout = onTimeout;
  }

  /** Posted outputs as items of the conversation, by call id. */
  get outputs(): ReadonlyMap<string, Item> {
    return new Map([...this.#calls].flatMap(([id, { output }]) => (output ? [[id, output]] : [])));
  }

  /** Ids of calls without an output. */
  get pending(): string[] {
    return [...this.#calls].filter(([, { output }]) => output === null).map(([callId]) => callId);
  }

  /** The call's arguments are complete, so its output may be posted. */
  announce(callId: string): void {
    if (!this.#calls.has(callId))
      this.#calls.set(callId, { output: null, isKept: false, answer: null });
  }

  /** An output that came before. */
  remember(output: Item): void {
    this.#calls.set(String(output["call_id"]), { output, isKept: true, answer: null });
  }

  /** The client's function: its call runs until the output is posted. */
  tool(definition: ToolDefinition): Tool {
    return {
      definition,
      server: clientServer,
      approval: "never",
      clientRuns: true,
      // A timer of its own ends the response: without the output, a model would invent one.
      timeoutMs: longestDelayMs,
      call: async (_args, { callId, signal }) => await this.wait(callId, signal),
    };
  }

  /**
   * Resolves when the call has its output. @param keep stores `outputs`; where it fails, nothing came
   * @throws FermataError not_found (no such call) | invalid_value (it has its output); what `keep` does
   */
  async deliver(callId: string, output: string, keep: () => Promise<void>): Promise<void> {
    await this.#keep([this.#fill(callId, output)], keep);
  }

  #fill(callId: string, output: string): HeldCall {
    const call = this.#calls.get(callId);
    if (call === undefined) {
      const message = `"tool_call_id" names no call of this response. Send one of its call ids.`;
      throw new FermataError("not_found", message, { param: "tool_call_id" });
    }
    if (call.output !== null) {
      const message = `"tool_call_id" names a call that is already completed. Send each output once.`;
      throw new FermataError("invalid_value", message, { param: "tool_call_id" });
    }
    call.output = outputItem(callId, output);
    return call;
  }

  async #keep(calls: readonly HeldCall[], keep: () => Promise<void>): Promise<void> {
    try {
      await keep();
    } catch (error) {
      for (const call of calls) call.output = null;
      throw error;
    }
    for (const call of calls) {
      call.isKept = true;
      call.answer?.(resultOf(call));
    }
  }

  /** Delivers the outputs if `input` is exactly the missing ones. @returns whether it is @throws what `keep` does */
  async take(input: readonly Item[], keep: () => Promise<void>): Promise<boolean> {
    const pending = new Set(this.pending);
    const isAnswer =
      input.length === pending.size &&
      input.every((item) => isClientOutput(item) && pending.delete(String(item["call_id"])));
    if (!isAnswer) return false;
    const calls = input.map((item) =>
      this.#fill(String(item["call_id"]), outputText(item["output"])),
    );
    await this.#keep(calls, keep);
    return true;
  }

  /** Resolves to the call's output when it comes; one that does not come in time ends the response. */
  async wait(callId: string, signal: AbortSignal): Promise<ToolResult> {
    this.announce(callId);
    const call = this.#calls.get(callId)!;
    if (call.isKept) return resultOf(call);
    const seconds = this.timeoutMs / 1000;
    const timer = setTimeout(() => {
      const message = `The output of call ${callId} did not come within ${seconds} seconds.`;
      this.#onTimeout(new FermataError("tool_output_timeout", message));
    }, this.timeoutMs);
    timer.unref();
    try {
      return await new Promise<ToolResult>((resolve) => {
        call.answer = resolve;
        const stop = (): void => resolve({ content: "Error: cancelled.", isError: true });
        signal.addEventListener("abort", stop, { once: true });
        if (signal.aborted) stop();
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

function resultOf({ output }: HeldCall): ToolResult {
  return { content: String(output!["output"]), isError: false };
}

function outputItem(callId: string, output: string): Item {
  return {
    id: newId("fco"),
    type: "function_call_output",
    status: "completed",
    call_id: callId,
    output,
  };
}

const showOutput = 'Send [{"type": "output_text", "text": "…"}]';

const part = object({ text: required(text({ remedy: showOutput })) }, showOutput, "passed over");
const parts = list(part, { min: 1, remedy: showOutput });

/** Body of POST /v1/responses/{id}/tool_outputs. */
export const toolOutputFields = {
  tool_call_id: required(text({ min: 1, remedy: "Send the call's id" })),
  output: required(
    either(
      {
        string: text(),
        array: mapped(parts, (texts) => texts.map((one) => one.text).join("\n")),
      },
      "an array",
      showOutput,
    ),
  ),
} satisfies FieldTable;

export function parseToolOutput(
  body: unknown,
  warn: Warn,
  maxBytes = defaultMaxBytes,
): { callId: string; output: string } {
  const showBody = 'Send {"tool_call_id": …, "output": […]}';
  const { tool_call_id: callId, output } = readBody(toolOutputFields, body, { warn }, showBody);
  const bytes = Buffer.byteLength(output);
  if (bytes <= maxBytes) return { callId, output };
  throw fieldError("invalid_value", "output", `has ${bytes} bytes`, `Send at most ${maxBytes}`);
}
