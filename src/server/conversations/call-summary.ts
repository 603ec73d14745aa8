/** A call in a line, for a list of calls. Arguments may be no JSON: then they stand as they are. */

const maxLength = 200;
const maxValueLength = 60;

/** `get_weather(location: "Tokyo")` */
export function callSummary(name: string, args: string): string {
  const value = parseObject(args);
  const text =
    value === null
      ? args
      : Object.entries(value)
          .map(([key, entry]) => `${key}: ${shorten(JSON.stringify(entry), maxValueLength)}`)
          .join(", ");
  return shorten(`${name}(${text})`, maxLength);
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Whole characters: half of a pair would be no text. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
