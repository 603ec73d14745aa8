/** C's `strftime` in English and local time, as far as templates use it. */

export function strftime(format: string, date: Date): string {
  return format.replaceAll(/%(-?)([a-zA-Z%])/gu, (directive, dash: string, letter: string) => {
    const text = directives[letter]?.(date);
    if (text === undefined) return directive;
    return dash === "" ? text : text.replace(/^0+(?=.)/u, "");
  });
}

const directives: Readonly<Record<string, (date: Date) => string>> = {
  "%": () => "%",
  Y: (date) => String(date.getFullYear()),
  y: (date) => pad(date.getFullYear() % 100),
  m: (date) => pad(date.getMonth() + 1),
  d: (date) => pad(date.getDate()),
  H: (date) => pad(date.getHours()),
  I: (date) => pad(date.getHours() % 12 || 12),
  M: (date) => pad(date.getMinutes()),
  S: (date) => pad(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  B: (date) => name(date, { month: "long" }),
  b: (date) => name(date, { month: "short" }),
  A: (date) => name(date, { weekday: "long" }),
  a: (date) => name(date, { weekday: "short" }),
  F: (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
  T: (date) => `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`,
};

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

function name(date: Date, options: Intl.DateTimeFormatOptions): string {
  return date.toLocaleDateString("en-US", options);
}
