// JSON schemas with texts that satisfy them, from folders of public test data.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const bfclFiles = ["BFCL_v4_simple_python", "BFCL_v4_multiple", "BFCL_v4_parallel"];
const bfclTypes = { dict: "object", float: "number", tuple: "array" };

function readLines(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

/** BFCL's dialect as JSON Schema. */
function bfclSchema(value) {
  if (Array.isArray(value)) return value.map(bfclSchema);
  if (typeof value !== "object" || value === null) return value;
  const schema = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key === "properties") {
      const entries = Object.entries(inner);
      schema.properties = Object.fromEntries(entries.map(([name, it]) => [name, bfclSchema(it)]));
    } else if (key === "type") {
      if (inner !== "any") schema.type = bfclTypes[inner] ?? inner;
    } else if (["items", "required", "enum", "additionalProperties"].includes(key)) {
      schema[key] = key === "required" || key === "enum" ? inner : bfclSchema(inner);
    }
  }
  return schema;
}

/**
 * The first of each parameter's right values, inside of objects too; "" is BFCL's mark of one that may be
 * left out.
 */
function bfclArguments(answer, { properties = {} }) {
  const entries = Object.keys(properties)
    .filter((name) => answer[name]?.length > 0 && answer[name][0] !== "")
    .map((name) => [name, bfclValue(answer[name][0], properties[name])]);
  return Object.fromEntries(entries);
}

function bfclValue(value, schema = {}) {
  if (Array.isArray(value)) return value.map((item) => bfclValue(item, schema.items));
  const isObject = typeof value === "object" && value !== null;
  return isObject && schema.properties ? bfclArguments(value, schema) : value;
}

/** The calls that BFCL expects: { id, name, schema, arguments, tools }; tools are all on offer. */
export function bfclCalls(data) {
  return bfclFiles.flatMap((file) => {
    const answers = new Map(
      readLines(join(data, "bfcl", "possible_answer", `${file}.json`)).map((it) => [
        it.id,
        it.ground_truth,
      ]),
    );
    return readLines(join(data, "bfcl", `${file}.json`)).flatMap(({ id, function: functions }) =>
      (answers.get(id) ?? []).flatMap((call) => {
        const [name, answer] = Object.entries(call)[0];
        const tool = functions.find((it) => it.name === name);
        if (!tool) return [];
        const schema = { ...bfclSchema(tool.parameters), additionalProperties: false };
        const tools = functions.map((it) => ({
          name: it.name,
          schema: { ...bfclSchema(it.parameters), additionalProperties: false },
        }));
        return [{ id, name, schema, tools, arguments: bfclArguments(answer, schema) }];
      }),
    );
  });
}

function suiteSchemas(directory) {
  return readdirSync(directory)
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) => JSON.parse(readFileSync(join(directory, file), "utf8")))
    .map(({ schema, tests }) => ({
      schema,
      instances: tests.filter(({ valid }) => valid).map(({ data }) => JSON.stringify(data)),
    }));
}

/** Schemas with texts: { schema, instances }. */
export function schemaCorpus(data) {
  const suite = join(data, "json-schema-test-suite", "tests");
  const calls = bfclCalls(data).map(({ schema, arguments: values }) => ({
    schema,
    instances: [JSON.stringify(values)],
  }));
  const drafts = ["draft2020-12", "draft7"].flatMap((draft) => suiteSchemas(join(suite, draft)));
  return [...calls, ...drafts];
}
