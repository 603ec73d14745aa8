/** All formats, and which one a template is of. */

import { type ToolCallFormat, defineFormat } from "./format.ts";
import { jsonFormats } from "./json-formats.ts";
import { namedFormats } from "./named-formats.ts";
import { parameterFormats } from "./parameter-formats.ts";

/** The first whose `detect` says yes is taken: the more special ones stand first. The last takes everything. */
export const formats: readonly ToolCallFormat[] = [
  ...namedFormats,
  ...parameterFormats,
  ...jsonFormats,
].map(defineFormat);

const json = formats.at(-1)!;
/** Hermes tags, which most models know. */
export const qwen = formatNamed("qwen")!;

/** What a generic prompt tells a model of this format to write: Hermes tags, where none is known. */
export function genericFormat(format: ToolCallFormat): ToolCallFormat {
  return format === json ? qwen : format;
}

export function detectFormat(template: string): ToolCallFormat {
  return formats.find((format) => format.detect(template)) ?? json;
}

/** @returns undefined when there is none of that name */
export function formatNamed(name: string): ToolCallFormat | undefined {
  return formats.find((format) => format.name === name);
}
