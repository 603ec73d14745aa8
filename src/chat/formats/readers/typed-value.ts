/** What a schema says of a value that was written without quotes. */

const pythonWords: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
};

/** JSON of a text: itself if the schema takes its value, else a string. */
export function writeValue(text: string, schema: unknown): string {
  const types = typesOf(schema);
  const trimmed = text.trim();
  const json = pythonWords[trimmed] ?? trimmed;
  const value = parse(json);
  const isTaken =
    value !== undefined &&
    typeof value !== "string" &&
    (types === null || types.has(typeOf(value)));
  return isTaken ? json : JSON.stringify(text);
}

/** @param key null: of a list's items */
export function schemaOfProperty(schema: unknown, key: string | null): unknown {
  if (!isObject(schema)) return undefined;
  if (key === null && schema["items"] !== undefined) return schema["items"];
  const { properties } = schema;
  if (key !== null && isObject(properties) && Object.hasOwn(properties, key))
    return properties[key];
  const branches = [schema["anyOf"], schema["oneOf"]].flat();
  return branches.map((branch) => schemaOfProperty(branch, key)).find((own) => own !== undefined);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON types that a schema takes; null when it does not say. */
export function typesOf(schema: unknown): ReadonlySet<string> | null {
  if (typeof schema !== "object" || schema === null) return null;
  const { type, enum: values, const: only, anyOf, oneOf } = schema as Record<string, unknown>;
  const types = new Set<string>();
  const add = (name: string): void => {
    types.add(name === "integer" ? "number" : name);
  };
  if (typeof type === "string") add(type);
  else if (Array.isArray(type)) for (const name of type) add(String(name));
  else if (Array.isArray(values)) for (const value of values) add(typeOf(value));
  else if (only !== undefined) add(typeOf(only));
  else {
    for (const branch of [anyOf, oneOf].flat()) {
      if (branch === undefined) continue;
      const inner = typesOf(branch);
      if (inner === null) return null;
      inner.forEach(add);
    }
  }
  return types.size === 0 ? null : types;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
