// docs/real-tasks.md, from the results of the tasks. Pure.

export function summaryOf(tasks, results) {
  const done = tasks.map(({ name }) => results[name]).filter((result) => result !== undefined);
  const count = (test) => done.filter(test).length;
  const ran = done.length;
  const inWords = count((result) => result.inWords === true);
  const right = count((result) => result.isRight === true);
  const malformed = done.reduce((sum, result) => sum + (result.malformed ?? 0), 0);
  const hangs = count(({ outcome }) => outcome === "hang");
  const atLimit = count((result) => Boolean(result.atLimit));
  const calls = done.reduce((sum, result) => sum + (result.calls?.length ?? 0), 0);
  const sentence =
    `${ran} of ${tasks.length} tasks ran: ${inWords} ended in an answer in words, ${right} of them right; ` +
    `${calls} calls, ${malformed} malformed; ${hangs} hangs; ${atLimit} answers came at a limit.`;
  return { ran, inWords, right, malformed, hangs, sentence };
}

const yesNo = (value) => (value ? "yes" : "no");

function row(task, result, number) {
  const offered = task.tools[0].allowed_tools?.length ?? "all";
  const tools = `${task.tools[0].server_label} (${offered})`;
  const head = `| ${number} | ${task.name} | ${tools} |`;
  if (result === undefined) return `${head} not run | | | |`;
  if (result.outcome !== "ended") return `${head} ${result.outcome} | no | no | |`;
  const names = result.calls.map(({ name }) => name);
  const limit = /limit of [^\]]*?(?= is reached)/.exec(result.atLimit ?? "")?.[0] ?? "";
  return `${head} ${summarized(names)} | ${yesNo(result.inWords)} | ${yesNo(result.isRight)} | ${limit} |`;
}

/** "a, a, a, b" as "a x3, b". */
function summarized(names) {
  const runs = [];
  for (const name of names) {
    if (runs.at(-1)?.name === name) runs.at(-1).count += 1;
    else runs.push({ name, count: 1 });
  }
  return runs.map(({ name, count }) => (count === 1 ? name : `${name} x${count}`)).join(", ");
}

export function page(tasks, results) {
  const { sentence } = summaryOf(tasks, results);
  return `# Real tasks

\`npm run test:real -- tasks\` gives a small real model, Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), ${tasks.length} tasks over real MCP servers from npm, one after the other on one server, at temperature 0. It writes this page. The tasks and what counts as right stand in \`scripts/real/task-list.mjs\`. The model is small: what it gets wrong is told, not tuned away. The engine's part is that every task ends in an answer in words, that no call is malformed and that nothing hangs.

${sentence}

| | task | server (tools offered) | calls | answer in words | right | limit |
| --- | --- | --- | --- | --- | --- | --- |
${tasks.map((task, index) => row(task, results[task.name], index + 1)).join("\n")}
`;
}
