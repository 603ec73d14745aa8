import { runEngine } from "../engine/run-engine.mjs";
import { chosen } from "./chosen.mjs";

function casesOf(quick) {
  const told = quick ? [100] : [300, 1200];
  const answers = quick ? [100] : [300, 900];
  return [
    ...told.map((words) => ({ name: `result of ${words} words`, case: "told", words })),
    ...answers.map((words) => ({ name: `sub-agent of ${words} words`, case: "answer", words })),
    { name: "read-only tools", case: "readOnly" },
  ];
}

/** Results and sub-agents' answers prefilled as they are told, and tools that start early. In one process. */
export async function measureEarly({ model, threads, quick, runs, progress, only }) {
  const rows = [];
  for (const { name, ...load } of chosen(casesOf(quick), only)) {
    progress(`early work: ${name}`);
    const { row, counts } = await runEngine("early", { model, threads, runs, ...load });
    progress(`  ${JSON.stringify(counts)}`);
    rows.push(row);
  }
  return rows;
}
