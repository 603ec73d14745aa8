import { shapes } from "../shapes/shape.mjs";
import { columnsOf } from "./columns.mjs";
import { machineLines } from "./machine.mjs";

const titles = {
  single: "one sequence, against llama-bench at the same settings",
  shared: "8 sequences sharing a prompt, against llama-batched-bench's arrangements",
  masks: "time of one mask, one core, against llama.cpp's GBNF",
  guided: "tool calls, greedy, one sequence",
  early: "early work, in one process",
  agents: "agent load over HTTP, 8 agents x 4 turns",
  retention: "more agents than contexts in the cache, over HTTP",
  swaps: "two streams beside conversations that leave their slots and come back, over HTTP",
  drafts: "answers that repeat their prompt, over HTTP",
  busy: "one sequence beside processes that keep cores busy, over HTTP",
};

/** A shape with random weights is called one; a model by its own name. */
const nameOf = (shape) => (shape in shapes ? `${shape} shape` : shape);

/** One table per shape and part: { title, heads, lines }. */
export function tablesOf({ shapes: measured }) {
  return Object.entries(measured).flatMap(([shape, results]) =>
    Object.entries(titles)
      .filter(([part]) => results[part])
      .map(([part, what]) => {
        const { date, busy, quick, runs, rows } = results[part];
        const when = `median of ${runs}, ${date}${busy ? ", on a BUSY machine" : ""}`;
        const how = quick ? "smoke run, figures mean nothing" : when;
        const columns = columnsOf[part];
        return {
          title: `${nameOf(shape)}: ${what} (${how})`,
          heads: columns.map(({ head }) => head),
          lines: rows.map((row) => columns.map(({ cell }) => cell(row, rows))),
        };
      }),
  );
}

function padded(cells, widths) {
  const text = cells.map((cell, index) =>
    index === 0 ? cell.padEnd(widths[index]) : cell.padStart(widths[index]),
  );
  return text.join("  ").trimEnd();
}

export function renderText(machine, tables) {
  const sections = tables.map(({ title, heads, lines }) => {
    const table = [heads, ...lines];
    const widths = heads.map((_, index) => Math.max(...table.map((cells) => cells[index].length)));
    return [title, ...table.map((cells) => padded(cells, widths))].join("\n");
  });
  return `${[machineLines(machine).join("\n"), ...sections].join("\n\n")}\n`;
}

export function renderMarkdown({ heads, lines }) {
  const rule = heads.map((_, index) => (index === 0 ? "---" : "--:"));
  return [heads, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
