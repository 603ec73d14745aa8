import type { Field, FieldTable, Schema } from "../../src/server/body/field.ts";

export interface DocumentedTable {
  endpoint: string;
  table: FieldTable;
  /** Fields of the SDK's type; the table may have more. */
  sdkFields: readonly string[];
}

/** docs/parameters.md */
export function parameterDocs(tables: readonly DocumentedTable[]): string {
  const head = [
    "# Request parameters",
    "",
    "What Fermata does with each field. *Ignored* fields are accepted; the log says so once, unless the value asks for",
    "nothing or for what happens anyway. *Refused* ones are a 400 that names the field. A field that is in no table is ignored with a warning.",
    "What a value may be stands in the third column, with its default; what a field has inside is in /openapi.json.",
    "Generated from the code by `npx vitest run --project unit test/unit/server/parameters.test.ts --update`.",
  ].join("\n");
  return `${[head, seeds, ...tables.map(section)].join("\n\n")}\n`;
}

const seeds = `## What a seed promises

The same request with the same seed gives the same tokens if the engine computes them in the same batches. A batch
holds rows of all requests that run, and of a prompt only what is not cached. With other batches the logits differ
in their last digits, and where two tokens are almost equally likely, another one may be chosen. This is also
true at \`temperature\` 0. So a request gives the same tokens again when it runs alone and finds the same part of its
prompt in the cache.

From the same logits, the same seed draws the token that llama.cpp's sampler chain draws, in the order of llama-server.
Two exceptions: of equal logits the lower id goes first, and \`top_p\` without \`top_k\` may keep one token more or less,
where llama.cpp's sum is rounded.

\`fermata serve --deterministic\` promises more: the tokens of an answer and their log-probabilities depend on the
tokens of the prompt, the options and the seed, not on other requests, the cache or tool calls that took time.
Choice \`i\` of seed \`s\` is then the only choice of seed \`s + i\`. This holds on one machine for the same build of
Fermata, model and engine options; it is tested on CPUs.

What it costs: each decode call computes one request only, so requests that run side by side do not share a pass over
the weights. Prompts are computed 32 tokens at a time, and up to 32 tokens at the end one by one. Every 32 generated
tokens are computed a second time, so that they can serve as a prefix later. Tool results are computed when all are
there, not early. For four requests at once with prompts of 256 tokens and 65 tokens to generate that is 1.1 times the
processor time on SmolLM2-135M and 1.4 times on the model that comes with Fermata (one run each, one thread). It needs
\`--kv-layout streams\`, the default on CPUs.`;

function section({ endpoint, table, sdkFields }: DocumentedTable): string {
  const rows = Object.entries(table).map(([name, field]) => {
    const origin = sdkFields.includes(name) ? "" : " (not OpenAI's)";
    return `| \`${name}\`${origin} | ${field.effect} | ${valuesOf(field)} | ${remark(field)} |`;
  });
  const head = ["| field | | values | |", "| --- | --- | --- | --- |"];
  return [`## ${endpoint}`, "", ...head, ...rows].join("\n");
}

function remark(field: Field): string {
  if (field.effect !== "refused") return field.about;
  const exception = field.accepts === null ? "" : " (some values are accepted)";
  return `${field.problem}${exception}. ${field.remedy}`;
}

/** What may be sent, and what is meant by nothing. */
function valuesOf(field: Field): string {
  if (field.effect !== "honoured") return "";
  const { type, isRequired, default: otherwise } = field;
  const values = typeOf(type.schema);
  if (isRequired) return `${values}; required`;
  return isPlain(otherwise) ? `${values}; default ${JSON.stringify(otherwise)}` : values;
}

/** Empty lists and objects are what nothing means anyway. */
function isPlain(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== "object" || (Array.isArray(value) && value.length > 0);
}

interface ListSchema {
  items?: Schema;
  maxItems?: number;
  prefixItems?: Schema[];
}

function typeOf({
  type,
  enum: choices,
  anyOf,
  const: only,
  minimum,
  maximum,
  ...rest
}: Schema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(anyOf)) return [...new Set((anyOf as Schema[]).map(typeOf))].join(" or ");
  if (Array.isArray(choices))
    return choices.map((choice) => (choice === "" ? '`""`' : `\`${choice}\``)).join(", ");
  if (Array.isArray(type)) return type.join(" or ");
  if (type === "array") {
    const { items = {}, maxItems, prefixItems } = rest as ListSchema;
    if (prefixItems !== undefined) return `list of ${prefixItems.map(typeOf).join(", then ")}`;
    if (maxItems === 0) return "an empty array";
    const most = maxItems === undefined ? "" : ` of up to ${maxItems}`;
    return `array${most} (${typeOf(items)})`;
  }
  if (type === "string") {
    const { maxLength } = rest as { maxLength?: number };
    return maxLength === undefined ? "string" : `string of up to ${maxLength} characters`;
  }
  if (minimum !== undefined && minimum === maximum) return String(minimum);
  const from = minimum === undefined ? "" : ` from ${bound(minimum)}`;
  const to = maximum === undefined ? "" : ` to ${bound(maximum)}`;
  return `${String(type)}${from}${to}`;
}

/** 2^64 in digits says nothing to a reader, and JavaScript's digits of it are rounded. */
function bound(value: unknown): string {
  if (value === 2 ** 64) return "2^64";
  return value === -(2 ** 64) ? "-2^64" : String(value);
}
