/** All formats, and which one a template is of. */

import type { ToolCallFormat } from "./format.ts";
import { apertus } from "./known/apertus.ts";
import { commandA, commandR7b } from "./known/cohere.ts";
import { deepseek, deepseekBlocks } from "./known/deepseek.ts";
import { deepseekV32, deepseekV4, deepseekV41 } from "./known/deepseek-dsml.ts";
import { functionary } from "./known/functionary.ts";
import { functionGemma, gemma4 } from "./known/gemma.ts";
import { gigachat3, gigachat31 } from "./known/gigachat.ts";
import { glm, glm47 } from "./known/glm.ts";
import { gptOss } from "./known/gpt-oss.ts";
import { hunyuan } from "./known/hunyuan.ts";
import { apriel, firefunction, granite, nemotron } from "./known/json-lists.ts";
import { jsonSection } from "./known/json-sections.ts";
import { json } from "./known/json.ts";
import { kimi } from "./known/kimi.ts";
import { kimiK3 } from "./known/kimi-k3.ts";
import { lfm2 } from "./known/lfm2.ts";
import { llama3 } from "./known/llama3.ts";
import { llama4 } from "./known/llama4.ts";
import { minicpm5 } from "./known/minicpm5.ts";
import { minimax, minimaxM3 } from "./known/minimax.ts";
import { mistral, mistralIds, mistralList } from "./known/mistral.ts";
import { qwen } from "./known/qwen.ts";
import { qwen3Coder, seedOss } from "./known/qwen3-coder.ts";
import { solar } from "./known/solar.ts";

/** The first whose `detect` says yes is taken: the more special ones stand first. The last takes everything. */
export const formats: readonly ToolCallFormat[] = [
  gptOss,
  kimi,
  kimiK3,
  deepseekBlocks,
  deepseek,
  deepseekV41,
  deepseekV32,
  deepseekV4,
  mistralIds,
  mistral,
  mistralList,
  minimaxM3,
  minimax,
  glm,
  glm47,
  seedOss,
  qwen3Coder,
  functionGemma,
  gemma4,
  lfm2,
  commandA,
  commandR7b,
  solar,
  apertus,
  gigachat3,
  gigachat31,
  minicpm5,
  granite,
  nemotron,
  apriel,
  jsonSection,
  firefunction,
  hunyuan,
  functionary,
  qwen,
  llama4,
  llama3,
  json,
];

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
