/** The log: lines for a terminal, JSON for everything else. Always on standard error. */

import { pino, type Logger } from "pino";

const levelNames: Record<number, string> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};
const hiddenFields = new Set(["level", "time", "msg", "pid", "hostname"]);

export function createLogger(level: string, stream: NodeJS.WriteStream): Logger {
  const options = { level, base: null };
  if (!stream.isTTY) return pino(options, stream);
  // A terminal that was closed takes no more lines; what runs is ended in order all the same.
  if (stream.listenerCount("error") === 0) stream.on("error", () => {});
  return pino(options, { write: (line: string) => stream.write(formatLogLine(line)) });
}

/** `14:03:07 info  tool call ended  server=fs tool=read_file` */
export function formatLogLine(line: string): string {
  const record = JSON.parse(line) as Record<string, unknown>;
  const time = new Date(Number(record["time"])).toTimeString().slice(0, 8);
  const level = (levelNames[Number(record["level"])] ?? "").padEnd(5);
  const fields = Object.entries(record)
    .filter(([key]) => !hiddenFields.has(key))
    .map(([key, value]) => ` ${key}=${formatValue(value)}`);
  return `${time} ${level} ${String(record["msg"])}${fields.length > 0 ? " " : ""}${fields.join("")}\n`;
}

/** Nothing that a terminal obeys: values come from models, tools and clients. */
function formatValue(value: unknown): string {
  if (typeof value === "string" && /^[^\s\p{C}]+$/u.test(value)) return value;
  return (JSON.stringify(value) ?? "").replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}
