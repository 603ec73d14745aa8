// The 30 tasks on Qwen2.5-Coder-1.5B. Each answer is kept as it comes: a run that ends early goes on later.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { installLocked } from "../setup/locked-packages.mjs";
import { cacheDir, root } from "../setup/paths.mjs";
import { say } from "../setup/report.mjs";
import { fetchRealModel } from "./models.mjs";
import { makeTaskFolder } from "./task-folder.mjs";
import { tasks } from "./task-list.mjs";
import { startTaskServer } from "./task-server.mjs";
import { page, summaryOf } from "./task-table.mjs";

const resultsPath = join(cacheDir, "real-tasks.json");
const pagePath = join(root, "docs", "real-tasks.md");
/** A task that takes longer hangs. */
const taskSeconds = 1200;
const maxOutputTokens = 800;

function keptResults() {
  try {
    return JSON.parse(readFileSync(resultsPath, "utf8"));
  } catch {
    // None yet.
    return {};
  }
}

/** `fetch` gives up after five minutes without headers; this one waits as long as a task may take. */
async function post(url, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" } };
  const signal = AbortSignal.timeout(taskSeconds * 1000);
  const response = await new Promise((resolve, reject) => {
    const sent = request(url, { ...options, signal }, resolve);
    sent.on("error", (error) => reject(signal.aborted ? signal.reason : error));
    sent.end(JSON.stringify(body));
  });
  return JSON.parse(await text(response));
}

async function ask(url, { ask: input, tools }) {
  const body = await post(`${url}/v1/responses`, {
    model: "local",
    input,
    tools,
    temperature: 0,
    max_output_tokens: maxOutputTokens,
    store: false,
  });
  return body.error ? { error: body.error.message } : body;
}

const notices = /\[No more tools were called: [^\]]*\]|\[The answer was stopped: [^\]]*\]/g;
/** What the model is told at a limit. A model that says it after us has not answered. */
const ownWords =
  /No more tools can be called|Answer (my question )?now[^.]*|The same call gave the same result again|Do something else, or answer[^.]*/gi;

/** A call that is no call of an offered tool with arguments of its schema, or one that was taken for text. */
function isMalformed({ arguments: text, error, status }) {
  // The limit of tokens cut it: it was not run.
  if (status === "incomplete") return false;
  try {
    JSON.parse(text);
  } catch {
    return true;
  }
  return /there is no tool|are not valid JSON|must be a JSON object|do not fit its schema/.test(
    error ?? "",
  );
}

function judge(task, body, seconds) {
  if (body.error) return { outcome: "error", error: body.error, seconds };
  const calls = body.output.filter(({ type }) => type === "mcp_call");
  const messages = body.output.filter(({ type }) => type === "message");
  const answer = messages
    .flatMap(({ content }) => content)
    .map((part) => part.text ?? "")
    .join("\n\n");
  const words = answer.replaceAll(notices, "").replaceAll(ownWords, "").trim();
  const strayCalls = /<\/?tool_call>/.test(answer) ? 1 : 0;
  return {
    outcome: "ended",
    seconds,
    calls: calls.map(({ name, arguments: args, error }) => ({ name, arguments: args, error })),
    text: answer,
    status: body.status,
    inWords: /\p{L}{2}|\d/u.test(words),
    malformed: calls.filter(isMalformed).length + strayCalls,
    atLimit: answer.match(notices)?.[0] ?? null,
    isRight: words !== "" && task.isRight({ text: words }),
    tokens: body.usage,
  };
}

async function run(url, task) {
  makeTaskFolder();
  const start = performance.now();
  const seconds = () => Math.round((performance.now() - start) / 1000);
  try {
    return judge(task, await ask(url, task), seconds());
  } catch (error) {
    if (error.name !== "TimeoutError") throw error;
    return { outcome: "hang", seconds: seconds() };
  }
}

/** Runs what has no result yet; `isAgain`: everything. Resolves to whether the bar is met. */
export async function runTasks({ isAgain = false } = {}) {
  const results = isAgain ? {} : keptResults();
  const open = tasks.filter(({ name }) => (results[name]?.outcome ?? "error") === "error");
  if (open.length > 0) {
    await installLocked(join(root, "scripts/real"), "Installing the MCP servers of the tasks");
    // The filesystem server does not start without its folder.
    makeTaskFolder();
    const server = await startTaskServer(await fetchRealModel("qwen2.5-coder"));
    try {
      for (const task of open) {
        const result = await run(server.url, task);
        results[task.name] = result;
        mkdirSync(dirname(resultsPath), { recursive: true });
        writeFileSync(resultsPath, JSON.stringify(results, null, 2));
        const verdict = result.isRight ? "right" : result.inWords ? "wrong" : "no answer";
        say(`task "${task.name}": ${verdict}, ${result.seconds} s`);
      }
    } finally {
      await server.stop();
    }
  }
  writeFileSync(pagePath, page(tasks, results));
  const { ran, inWords, malformed, hangs, sentence } = summaryOf(tasks, results);
  say(sentence);
  return inWords >= 0.9 * ran && malformed === 0 && hangs === 0;
}
