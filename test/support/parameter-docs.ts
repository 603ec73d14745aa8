import type { Parameter, ParameterTable } from "../../src/server/body/parameter.ts";

export interface DocumentedTable {
  endpoint: string;
  table: ParameterTable;
  /** Fields of the SDK's type; the table may have more. */
  sdkFields: readonly string[];
}

/** docs/parameters.md */
export function parameterDocs(tables: readonly DocumentedTable[]): string {
  const head = [
    "# Request parameters",
    "",
    "What Fermata does with each field. *Ignored* fields are accepted, and the log says so once; *refused*",
    "ones are a 400 that names the field. A field that is in no table is ignored with a warning.",
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
  const rows = Object.entries(table).map(
    ([name, parameter]) =>
      `| \`${name}\`${sdkFields.includes(name) ? "" : " (not OpenAI's)"} | ${parameter.effect} | ${remark(parameter)} |`,
  );
  return [`## ${endpoint}`, "", "| field | | |", "| --- | --- | --- |", ...rows].join("\n");
}

function remark(parameter: Parameter): string {
  switch (parameter.effect) {
    case "honoured":
      return parameter.note ?? "";
    case "ignored":
      return parameter.why;
    case "refused":
      return `${parameter.problem}${parameter.accepts === undefined ? "" : " (some values are accepted)"}. ${parameter.remedy}`;
  }
}
