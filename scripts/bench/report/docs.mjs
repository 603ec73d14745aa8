import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { barChart } from "./bar-chart.mjs";
import { kindOfProcessor, machineLines } from "./machine.mjs";
import { bestArrangement, bestServer } from "./best.mjs";
import { renderMarkdown, tablesOf } from "./tables.mjs";

const bar = (row, label, value) => ({ label, value, isFermata: Boolean(row.isFermata) });

function singleCharts(shape, rows) {
  const setting = rows[0].setting;
  const bars = rows
    .filter((row) => row.setting === setting)
    .flatMap(({ depth, fermata, peer }) => [
      { label: `Fermata, depth ${depth}`, value: fermata.decode, isFermata: true },
      { label: `llama-bench, depth ${depth}`, value: peer.decode, isFermata: false },
    ]);
  return {
    decode: { title: `${shape}: one sequence, decode (more is better)`, unit: "t/s", bars },
  };
}

function sharedCharts(shape, rows) {
  const generated = Math.max(...rows.map((row) => row.generated));
  const group = rows.filter((row) => row.generated === generated);
  const shown = [group.find((row) => row.isFermata), bestArrangement(group)].filter(Boolean);
  const bars = shown.map((row) => bar(row, row.name, row.median.decode));
  const title = `${shape}: 8 sequences sharing 1,500 tokens, decode in all (more is better)`;
  return { shared: { title, unit: "t/s", bars } };
}

function agentCharts(shape, rows) {
  const ours = rows.find((row) => row.isFermata);
  const asItComes = rows.find((row) => !row.isFermata && row.name.includes("as it comes"));
  const best = bestServer(rows);
  const shown = [ours, best, asItComes].filter((row, at, all) => row && all.indexOf(row) === at);
  const chart = (title, unit, value) => ({
    title: `${shape}, 8 agents x 4 turns: ${title}`,
    unit,
    bars: shown.map((row) => bar(row, row.name, value(row.median))),
  });
  return {
    agents: chart("turns per minute (more is better)", "/min", (it) => it.turnsPerMinute),
    resume: chart("resume TTFT, p50 (less is better)", "s", (it) => it.resumeTtftP50 / 1000),
  };
}

function busyCharts(shape, rows) {
  const bars = rows.flatMap(({ processes, median }) => [
    { label: `Fermata, ${processes} busy`, value: median.fermata, isFermata: true },
    { label: `llama-server, ${processes} busy`, value: median.peer, isFermata: false },
  ]);
  const title = `${shape}: one sequence beside busy processes, decode (more is better)`;
  return { busy: { title, unit: "t/s", bars } };
}

function draftCharts(shape, rows) {
  const bars = rows.map((row) => bar(row, `${row.name}: ${row.kind}`, row.median.rate));
  const title = `${shape}: answers that repeat their prompt (more is better)`;
  return { drafts: { title, unit: "t/s", bars } };
}

const chartsOf = {
  single: singleCharts,
  shared: sharedCharts,
  agents: agentCharts,
  busy: busyCharts,
  drafts: draftCharts,
};

/**
 * Writes the tables as Markdown and a chart per figure that matters, into the folder of this kind of
 * processor: figures of different processors never share a table.
 */
export function writeDocs(benchDirectory, results) {
  const directory = join(benchDirectory, kindOfProcessor(results.machine));
  mkdirSync(directory, { recursive: true });
  const images = [];
  for (const [shape, measured] of Object.entries(results.shapes)) {
    for (const [part, build] of Object.entries(chartsOf)) {
      if (!measured[part]) continue;
      for (const [name, chart] of Object.entries(build(shape, measured[part].rows))) {
        const file = `${shape.toLowerCase()}-${name}.svg`;
        writeFileSync(join(directory, file), barChart(chart));
        images.push(`![${chart.title}](${file})`);
      }
    }
  }
  const tables = tablesOf(results).map((table) => `## ${table.title}\n\n${renderMarkdown(table)}`);
  const machine = machineLines(results.machine).map((line) => `- ${line}`);
  const head =
    "# Bench results\n\nMade by `npm run bench -- --docs`; what each figure means: [README.md](../README.md).";
  const text = [head, machine.join("\n"), images.join("\n\n"), ...tables].join("\n\n");
  writeFileSync(join(directory, "results.md"), `${text}\n`);
}
