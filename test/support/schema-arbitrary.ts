// Values for a JSON Schema, and values that are nearly so: bodies for the fuzz tests.
import fc from "fast-check";

type Schema = { [key: string]: unknown };

/** Ids that may be found and texts that parsers stumble over, beside random ones. */
const strings = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    "get_weather",
    "call_1",
    "default",
    "null",
    "{}",
    "\u0000",
    "<|im_end|>",
  ),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 6 }),
);
const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(null, -1, 0, 1e308, 2 ** 53, 0.5, "", [], {}, [[]], [null], { type: 1 }),
  fc.constant("x".repeat(5000)),
);

/** Mostly what `schema` says; each part of it may be something else. */
export function nearly(schema: Schema, chance = 0.04): fc.Arbitrary<unknown> {
  const right = exactly(schema, chance);
  const weight = Math.round(chance * 1000);
  return fc.oneof({ weight: 1000 - weight, arbitrary: right }, { weight, arbitrary: junk });
}

function exactly(schema: Schema, chance: number): fc.Arbitrary<unknown> {
  const { type, enum: choices, anyOf, minimum, maximum } = schema;
  if (Array.isArray(anyOf)) return fc.oneof(...anyOf.map((one) => nearly(one as Schema, chance)));
  if (Array.isArray(choices)) return fc.constantFrom(...(choices as unknown[]));
  switch (type) {
    case "string":
      return schema["pattern"] === undefined
        ? strings
        : fc.oneof(fc.constantFrom("get_weather", "list_files", "a-b"), strings);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "integer":
      return fc.integer({
        min: (minimum as number | undefined) ?? -1000,
        max: Math.min((maximum as number | undefined) ?? 1000, 1000),
      });
    case "number":
      return fc.double({ min: minimum as number, max: maximum as number, noNaN: true });
    case "array":
      if (Array.isArray(schema["prefixItems"]))
        return fc.tuple(...schema["prefixItems"].map((one) => nearly(one as Schema, chance)));
      return fc.array(nearly((schema["items"] ?? {}) as Schema, chance), {
        minLength: (schema["minItems"] as number | undefined) ?? 0,
        maxLength: 4,
      });
    case "object":
      return objectOf(schema, chance);
    default:
      return junk;
  }
}

function objectOf(schema: Schema, chance: number): fc.Arbitrary<unknown> {
  const properties = (schema["properties"] ?? {}) as Record<string, Schema>;
  const required = (schema["required"] ?? []) as string[];
  const names = Object.keys(properties);
  if (names.length === 0) return fc.dictionary(strings, junk, { maxKeys: 3 });
  const parts = Object.fromEntries(names.map((name) => [name, nearly(properties[name]!, chance)]));
  const optional = names.filter((name) => !required.includes(name));
  const chosen = fc.subarray(optional, { maxLength: Math.min(optional.length, 6) });
  const drops = fc.integer({ min: 0, max: 30 });
  // Chosen first: an endpoint has a hundred fields, and values for all of them take most of a test's time.
  return fc
    .record({ chosen, dropped: fc.subarray(required), drops, extra: fc.option(junk, { freq: 40 }) })
    .chain(({ chosen, dropped, drops, extra }) => {
      const kept = [...required.filter((name) => drops > 0 || !dropped.includes(name)), ...chosen];
      return fc
        .record(Object.fromEntries(kept.map((name) => [name, parts[name]!])))
        .map((own) => (extra === null ? own : { ...own, surprise: extra }));
    });
}
