/** Finds the calls in a whole text, as the engine does while a model writes it. */

import { qwenFormat } from "../chat/formats/format.ts";
import { OutputParser } from "../chat/formats/output-parser.ts";
import type { ToolCall } from "../chat/types.ts";

export interface ToolParserOptions {
  /** JSON without tags is a call only if it names one of these. Default: any name will do. */
  tools?: readonly string[] | undefined;
}

export interface ParsedOutput {
  reasoning: string;
  /** Everything that is neither reasoning nor a call. */
  content: string;
  calls: ToolCall[];
}

const anyName = { has: () => true };

/**
 * Recognizes `<tool_call>{"name": …, "arguments": …}</tool_call>`, a JSON object with these keys at
 * the start of a line, and the same in a ```json block.
 */
export class ToolParser {
  readonly #options: ToolParserOptions;

  constructor(options: ToolParserOptions = {}) {
    this.#options = options;
  }

  parse(text: string): ToolCall[] {
    return this.parseOutput(text).calls;
  }

  parseOutput(text: string): ParsedOutput {
    const { tools } = this.#options;
    const offered = tools === undefined ? anyName : new Set(tools);
    const parser = new OutputParser({ format: qwenFormat, offered, reasoning: "split" });
    const output: ParsedOutput = { reasoning: "", content: "", calls: parser.calls };
    for (const event of [...parser.push(text), ...parser.finish(true)]) {
      if (event.type === "content" || event.type === "reasoning") output[event.type] += event.text;
    }
    return output;
  }
}
