// Agents with tools of their own over chat completions, as an SDK sends them: no header and no key of ours.
import { system, taskOf, toolResult, tools } from "../agents/dialogue.mjs";

const think = () => new Promise((resolve) => setTimeout(resolve, 100));

/** Agents of one kind share a system message; each has a task of its own. */
export function opening(agent, kinds) {
  const kind = agent % kinds;
  return [
    { role: "system", content: `You are of kind ${kind}. ${system}` },
    { role: "user", content: taskOf(agent) },
  ];
}

/** One request; the answer's message, its usage and who answered. @throws Error with `status`, or without at a lost connection */
export async function chat(url, messages) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "default", messages, tools, max_tokens: 64, temperature: 0 }),
  });
  const body = await response.json().catch(() => ({}));
  if (!response.ok)
    throw Object.assign(new Error(JSON.stringify(body)), { status: response.status });
  return {
    message: body.choices[0].message,
    promptTokens: body.usage.prompt_tokens,
    replica: response.headers.get("x-fermata-replica"),
  };
}

/** What comes next: the results of the calls, or another message where there is none. */
function results(message, agent, round) {
  const content = toolResult(agent, round);
  const calls = message.tool_calls ?? [];
  if (calls.length === 0) return [{ role: "user", content }];
  return calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content }));
}

/** @param ask as `chat`, with `agent` and `round` */
export async function runAgent(url, agent, { rounds, kinds }, ask = chat) {
  const messages = opening(agent, kinds);
  const requests = [];
  for (let round = 0; round < rounds; round++) {
    const { message, promptTokens, replica } = await ask(url, messages);
    requests.push({ promptTokens, replica, before: requests.at(-1)?.replica ?? null });
    messages.push(message, ...results(message, agent, round));
    await think();
  }
  return requests;
}

/** `atOnce` agents at a time, the first of which has the number `first`. Resolves with { seconds, requests } */
export async function runLoad(url, load) {
  const start = performance.now();
  const requests = [];
  let next = load.first;
  const worker = async () => {
    while (next < load.first + load.agents) requests.push(...(await runAgent(url, next++, load)));
  };
  await Promise.all(Array.from({ length: load.atOnce }, worker));
  return { seconds: (performance.now() - start) / 1000, requests };
}
