/** The fields of a question's schema, as a form or a terminal asks for them. */

export interface QuestionField {
  name: string;
  label: string;
  description: string;
  kind: "text" | "number" | "boolean" | "choice" | "choices";
  /** Of a choice; the label is shown. */
  options: { value: string; label: string }[];
  isRequired: boolean;
  /** As it is typed. */
  initial: string;
}

type Json = { [key: string]: unknown };

export function questionFields(schema: Json | undefined): QuestionField[] {
  const properties = objectOf(schema?.["properties"]);
  const required = listOf(schema?.["required"]);
  return Object.entries(properties).map(([name, value]) => {
    const field = objectOf(value);
    const { title, description, default: initial } = field;
    const options = optionsOf(field["type"] === "array" ? objectOf(field["items"]) : field);
    return {
      name,
      label: typeof title === "string" ? title : name,
      description: typeof description === "string" ? description : "",
      kind: kindOf(field, options.length > 0),
      options,
      isRequired: required.includes(name),
      initial: Array.isArray(initial) ? initial.join(", ") : String(initial ?? ""),
    };
  });
}

/**
 * Undefined: nothing was typed. What does not fit stays text, and the server says what is wrong with it.
 * @param given text as it is typed, choices with commas between them; or a form's values
 */
export function fieldValue(
  { kind, options }: QuestionField,
  given: string | readonly string[],
): unknown {
  if (typeof given !== "string" && kind === "choices" && options.length > 0)
    return given.length === 0 ? undefined : [...given];
  const typed = typeof given === "string" ? given : given.join(", ");
  const text = typed.trim();
  if (text === "") return undefined;
  const valueOf = (name: string): string =>
    (options.find(({ value }) => value === name) ?? options.find(({ label }) => label === name))
      ?.value ?? name;
  switch (kind) {
    case "number":
      return Number.isNaN(Number(text)) ? text : Number(text);
    case "boolean":
      return /^(y|yes|true)$/i.test(text) || (!/^(n|no|false)$/i.test(text) && text);
    case "choice":
      return valueOf(text);
    case "choices":
      return partsOf(text, options).map(valueOf);
    case "text":
      return typed;
  }
}

/** @param given by the names of fields, as `fieldValue` takes it */
export function questionContent(
  fields: readonly QuestionField[],
  given: (name: string) => string | readonly string[],
): Json {
  const values = fields.map((field) => [field.name, fieldValue(field, given(field.name))] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** Between commas, except those within the name of an option. */
function partsOf(text: string, options: QuestionField["options"]): string[] {
  const names = options
    .flatMap(({ value, label }) => [value, label])
    .toSorted((one, other) => other.length - one.length);
  const parts: string[] = [];
  for (let rest = text; rest !== "";) {
    const known = names.find(
      (name) => rest.startsWith(name) && /^\s*(,|$)/.test(rest.slice(name.length)),
    );
    const part = known ?? rest.split(",", 1)[0]!;
    parts.push(part.trim());
    rest = rest.slice(part.length).replace(/^\s*,?\s*/, "");
  }
  return parts;
}

function kindOf({ type }: Json, hasOptions: boolean): QuestionField["kind"] {
  if (type === "array") return "choices";
  if (hasOptions) return "choice";
  if (type === "boolean") return type;
  return type === "number" || type === "integer" ? "number" : "text";
}

function optionsOf(field: Json): QuestionField["options"] {
  const names = listOf(field["enumNames"]);
  const values = listOf(field["enum"]).map((value, index) => ({
    value: String(value),
    label: String(names[index] ?? value),
  }));
  const titled = [...listOf(field["oneOf"]), ...listOf(field["anyOf"])].map((option) => {
    const { const: value, title } = objectOf(option);
    return { value: String(value), label: String(title ?? value) };
  });
  return [...values, ...titled];
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
