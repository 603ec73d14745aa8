import type { Parameter, ParameterTable } from "../../src/server/openai/parameters/parameter.ts";

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
  return `${[head, ...tables.map(section)].join("\n\n")}\n`;
}

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
