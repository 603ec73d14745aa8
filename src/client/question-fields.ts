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

/** Undefined: nothing was typed. What does not fit stays text, and the server says what is wrong with it. */
export function fieldValue({ kind, options }: QuestionField, typed: string): unknown {
  const text = typed.trim();
  if (text === "") return undefined;
  const valueOf = (label: string): string =>
    options.find((option) => option.value === label || option.label === label)?.value ?? label;
  switch (kind) {
    case "number":
      return Number.isNaN(Number(text)) ? text : Number(text);
    case "boolean":
      return /^(y|yes|true)$/i.test(text) || (!/^(n|no|false)$/i.test(text) && text);
    case "choice":
      return valueOf(text);
    case "choices":
      return text.split(",").map((part) => valueOf(part.trim()));
    case "text":
      return typed;
  }
}

/** @param typed by the names of fields */
export function questionContent(
  fields: readonly QuestionField[],
  typed: (name: string) => string,
): Json {
  const values = fields.map((field) => [field.name, fieldValue(field, typed(field.name))] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
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
