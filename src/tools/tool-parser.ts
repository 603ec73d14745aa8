/** Finds the calls in a whole text, as the engine does while a model writes it. */

import type { ToolCallFormat } from "../chat/formats/format.ts";
import { formatNamed } from "../chat/formats/formats.ts";
import { qwen } from "../chat/formats/formats.ts";
import { OutputParser } from "../chat/parser/output-parser.ts";
import type { OfferedTools } from "../chat/formats/readers/reader.ts";
import type { JsonSchema, ToolCall, ToolDefinition } from "../chat/types.ts";
import { FermataError } from "../errors.ts";

export interface ToolParserOptions {
  /**
   * JSON without tags is a call only if it names one of these. Default: any name will do. Formats that write
   * arguments without types need the definitions to tell the string `"5"` from the number.
   */
  tools?: readonly (string | ToolDefinition)[] | undefined;
  /** A format's name, as for `--tool-format`. Default: `qwen`. */
  format?: string | undefined;
}

export interface ParsedOutput {
  reasoning: string;
  /** Everything that is neither reasoning nor a call. */
  content: string;
  calls: ToolCall[];
}

const anyName: OfferedTools = { has: () => true, get: () => undefined };

/**
 * By default it recognizes `<tool_call>{"name": …, "arguments": …}</tool_call>`, a JSON object with these
 * keys at the start of a line, and the same in a ```json block.
 */
export class ToolParser {
  readonly #format: ToolCallFormat;
  readonly #offered: OfferedTools;

  /** @throws FermataError invalid_value: there is no such format */
  constructor({ tools, format = qwen.name }: ToolParserOptions = {}) {
    const known = formatNamed(format);
    if (known === undefined)
      throw new FermataError("invalid_value", `There is no tool-call format "${format}".`);
    this.#format = known;
    this.#offered = tools === undefined ? anyName : new Map(tools.map(toEntry));
  }

  parse(text: string): ToolCall[] {
    return this.parseOutput(text).calls;
  }

  parseOutput(text: string): ParsedOutput {
    const parser = new OutputParser({
      format: this.#format,
      offered: this.#offered,
      reasoning: "split",
    });
    const output: ParsedOutput = { reasoning: "", content: "", calls: parser.calls };
    for (const event of [...parser.push(text), ...parser.finish(true)]) {
      if (event.type === "content" || event.type === "reasoning") output[event.type] += event.text;
    }
    return output;
  }
}

function toEntry(tool: string | ToolDefinition): [string, JsonSchema | undefined] {
  return typeof tool === "string" ? [tool, undefined] : [tool.name, tool.parameters];
}
