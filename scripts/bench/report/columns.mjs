import { bestArrangement, bestServer } from "./best.mjs";
import { medians } from "./statistics.mjs";

const number = (value, digits = 1) => (Number.isFinite(value) ? value.toFixed(digits) : "-");
const times = (ours, theirs) =>
  Number.isFinite(ours / theirs) ? `${number(ours / theirs, 2)}x` : "-";
const seconds = (milliseconds) => number(milliseconds / 1000, 2);

/** A column is a head and what stands in a row. */
const column = (head, cell) => ({ head, cell });
const field = (head, name, digits) => column(head, ({ median }) => number(median[name], digits));
const secondsField = (head, name) => column(head, ({ median }) => seconds(median[name]));
/** A figure over that of the peer's best row among those that `bestFor(row, rows)` compares. */
const ratioToBest = (name, bestFor) =>
  column("/best", (row, rows) => times(row.median[name], bestFor(row, rows)?.median[name]));
const nameColumn = (bestFor) =>
  column("", (row, rows) => (row === bestFor(row, rows) ? `${row.name} (best)` : row.name));

const single = [
  column("setting", ({ setting }) => setting),
  column("depth", ({ depth }) => String(depth)),
  column("prefill t/s", ({ fermata }) => number(fermata.prefill)),
  column("llama-bench", ({ peer }) => number(peer.prefill)),
  column("ratio", ({ fermata, peer }) => times(fermata.prefill, peer.prefill)),
  column("decode t/s", ({ fermata }) => number(fermata.decode)),
  column("llama-bench", ({ peer }) => number(peer.decode)),
  column("ratio", ({ fermata, peer }) => times(fermata.decode, peer.decode)),
];

const arrangementFor = (row, rows) =>
  bestArrangement(rows.filter(({ generated }) => generated === row.generated));

const shared = [
  nameColumn(arrangementFor),
  column("tokens each", ({ generated }) => String(generated)),
  field("prefill t/s", "prefill"),
  ratioToBest("prefill", arrangementFor),
  field("decode t/s", "decode"),
  ratioToBest("decode", arrangementFor),
  field("wall s", "seconds", 2),
  field("micro-batches/step", "microBatchesPerStep", 2),
];

const serverFor = (_row, rows) => bestServer(rows);

const agents = [
  nameColumn(serverFor),
  field("turns/min", "turnsPerMinute"),
  ratioToBest("turnsPerMinute", serverFor),
  field("wall s", "seconds"),
  secondsField("TTFT p50 s", "ttftP50"),
  secondsField("resume TTFT p50 s", "resumeTtftP50"),
  ratioToBest("resumeTtftP50", serverFor),
  secondsField("p99 s", "resumeTtftP99"),
  field("inter-token p50 ms", "interTokenP50", 0),
  field("p99 ms", "interTokenP99", 0),
  field("re-prefill", "rePrefillRatio", 2),
  field("micro-batches/step", "microBatchesPerStep", 2),
];

const masks = [
  column("", ({ engine }) => engine),
  column("schemas", ({ tried }) => String(tried)),
  column("compiled", ({ compiled }) => String(compiled)),
  column("masks", (row) => String(row.masks)),
  column("mask p50 us", ({ p50 }) => number(p50)),
  column("p99 us", ({ p99 }) => number(p99)),
  column("max us", ({ max }) => number(max, 0)),
  column("first mask p50 ms", ({ firstP50 }) => number(firstP50 / 1000, 2)),
  column("p99 ms", ({ firstP99 }) => number(firstP99 / 1000, 2)),
];

const guided = [
  column("", ({ name }) => name),
  column("tokens/s", ({ rate }) => number(rate)),
  column("/unguided", ({ rate, unguided }) => times(rate, unguided)),
  column("steps a token", ({ stepsPerToken }) => number(stepsPerToken, 2)),
  column("same text", ({ same }) => same),
];

const early = [
  column("", ({ name }) => name),
  column("told over s", ({ early: { told } }) => seconds(told)),
  column("plain ms", ({ plain }) => number(plain.ttft)),
  column("early ms", (row) => number(row.early.ttft)),
  column("ratio", (row) => times(row.early.ttft, row.plain.ttft)),
  column("more ms", (row) => number(row.early.ttft - row.plain.ttft)),
  column("plain rows", ({ plain }) => number(plain.rows, 0)),
  column("early rows", (row) => number(row.early.rows, 0)),
];

const sameLoad = (row, rows) =>
  bestServer(rows.filter((it) => it.kind === row.kind && it.perSlot === row.perSlot));
const rowsOver = (head, least) =>
  column(head, ({ median }) => times(median.computedRows, median[least]));

const retention = [
  nameColumn(sameLoad),
  column("load", ({ kind }) => kind),
  column("agents a slot", ({ perSlot }) => String(perSlot)),
  field("turns/min", "turnsPerMinute"),
  ratioToBest("turnsPerMinute", sameLoad),
  field("rows computed", "computedRows", 0),
  rowsOver("/least", "leastRows"),
  rowsOver("/Belady in 8 contexts", "beladyRows"),
  rowsOver("/LRU", "lruRows"),
  rowsOver("/pinning", "pinnedRows"),
  secondsField("newcomers' TTFT p95 s", "newcomersTtftP95"),
  secondsField("resume TTFT p50 s", "resumeTtftP50"),
  secondsField("p95 s", "resumeTtftP95"),
  field("peak MiB", "peakMiB", 0),
];

const inSlots = (rows) => rows.find(({ name }) => name.includes("a slot for each"));

const swaps = [
  column("", ({ name }) => name),
  field("inter-token p50 ms", "interTokenP50"),
  field("p99 ms", "interTokenP99"),
  column("/in slots", ({ median }, rows) =>
    times(median.interTokenP99, inSlots(rows)?.median.interTokenP99),
  ),
  field("turns beside", "turns", 0),
  field("brought back", "restores", 0),
];

const sameKind = (rows, { kind }) => rows.filter((row) => row.kind === kind);
const fastestPeer = (row, rows) =>
  sameKind(rows, row)
    .filter((it) => !it.isFermata)
    .toSorted((a, b) => b.median.rate - a.median.rate)[0];
const withoutDrafts = (row, rows) =>
  row.isFermata ? sameKind(rows, row).find(({ name }) => name.endsWith("no drafts")) : undefined;

/** Both of a pair were measured one after the other; from run to run a processor may be faster or slower. */
function medianOfPairs({ runs }, peer) {
  if (peer === undefined) return "-";
  const pairs = runs.map(({ rate }, run) => ({ ratio: rate / peer.runs[run].rate }));
  return times(medians(pairs).ratio, 1);
}

const drafts = [
  nameColumn(fastestPeer),
  column("answer", ({ kind }) => kind),
  field("tokens/s", "rate"),
  column("/no drafts", (row, rows) => medianOfPairs(row, withoutDrafts(row, rows))),
  ratioToBest("rate", fastestPeer),
  field("tokens", "tokens", 0),
  field("steps", "steps", 0),
  field("drafted rows", "drafted", 0),
  field("accepted", "accepted", 0),
];

const rate =
  (name) =>
  ({ median }) =>
    number(median[name]);
const toAlone = (name) => (row, rows) =>
  times(row.median[name], rows.find(({ processes }) => processes === 0).median[name]);

const busy = [
  column("busy processes", ({ processes }) => String(processes)),
  column("Fermata t/s", rate("fermata")),
  column("/alone", toAlone("fermata")),
  column("one thread", rate("oneThread")),
  column("llama-server", rate("peer")),
  column("/alone", toAlone("peer")),
  column("one thread", rate("peerOneThread")),
  column("ratio", ({ median }) => times(median.fermata, median.peer)),
];

export const columnsOf = {
  single,
  shared,
  masks,
  guided,
  early,
  agents,
  retention,
  swaps,
  drafts,
  busy,
};
