const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
const percent = (fraction) => `${(100 * fraction).toFixed(1)} %`;
const whole = (number) => Math.round(number).toLocaleString("en");

function tableText(heads, lines) {
  const rule = heads.map((_, index) => (index === 0 ? "---" : "--:"));
  return [heads, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const compared = [
  ["turns a minute", "turnsPerMinute", (value) => value.toFixed(1)],
  ["TTFT p50", "ttftP50", seconds],
  ["TTFT p95", "ttftP95", seconds],
  ["answer p50", "answerP50", seconds],
  ["answer p95", "answerP95", seconds],
  ["rows", "rows", whole],
];

/** Real and simulated figures side by side. */
export function renderValidation({ machine, shape, date, busy, load, runs, compared: sizes }) {
  const lines = sizes.flatMap(({ replicas, real, simulated, errors }) =>
    compared.map(([name, field, show]) => [
      `${replicas} replica${replicas === 1 ? "" : "s"}, ${name}`,
      show(real[field]),
      show(simulated[field]),
      `${errors[field] < 0 ? "" : "+"}${percent(errors[field])}`,
    ]),
  );
  const { agents, rounds, kinds, atOnce } = load;
  return [
    `${machine.cpu}, ${machine.cores} cores for all replicas and the clients; ${shape} shape; ${date}. ${agents} agents of ${kinds} kinds, ${rounds} rounds, ${atOnce} at once; ${runs === 1 ? "one real run" : `median of ${runs} real runs`}.`,
    ...(busy ? ["Other programs used this machine: do not quote these figures."] : []),
    tableText(["", "real", "simulated", "error"], lines),
  ].join("\n\n");
}

const columns = [
  ["replicas", ({ replicas }) => whole(replicas)],
  ["routing", ({ setting }) => setting],
  ["turns/min", ({ turnsPerMinute }) => whole(turnsPerMinute)],
  ["TTFT p50", ({ ttftP50 }) => seconds(ttftP50)],
  ["p95", ({ ttftP95 }) => seconds(ttftP95)],
  ["p99", ({ ttftP99 }) => seconds(ttftP99)],
  ["queue p95", ({ waitP95 }) => seconds(waitP95)],
  ["from the cache", ({ hitRate }) => percent(hitRate)],
  ["rows / least", ({ rowsOverLeast }) => rowsOverLeast.toFixed(2)],
  ["busy", ({ busy }) => percent(busy)],
  ["busiest", ({ busiest }) => percent(busiest)],
  ["RAM, files of each", ({ ramMiB, diskMiB }) => `${whole(ramMiB)}, ${whole(diskMiB)} MiB`],
  ["remote link", ({ remoteBusy }) => (remoteBusy === undefined ? "" : percent(remoteBusy))],
  ["database", ({ limits }) => percent(limits.postgres)],
  ["proxy", ({ limits }) => percent(limits.proxy)],
  ["breaks first", ({ breaksFirst }) => breaksFirst],
];

/** Markdown. */
export function renderTable({ machine, shape, date, perMinute, rows }) {
  return [
    `${machine.cpu}, ${machine.cores} cores; ${shape} shape; ${date}. ${perMinute.toFixed(2)} new sessions a minute for each replica.`,
    tableText(
      columns.map(([head]) => head),
      rows.map((row) => columns.map(([, cell]) => cell(row))),
    ),
  ].join("\n\n");
}

/** The page with `text` between the marks of this name. */
export function withSection(page, name, text) {
  const begin = `<!-- ${name}: begin -->\n`;
  const end = `<!-- ${name}: end -->\n`;
  const [before, rest] = page.split(begin);
  return `${before}${begin}\n${text}\n\n${end}${rest.split(end)[1]}`;
}
