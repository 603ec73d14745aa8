import { loadDist } from "./dist.mjs";
import { pairedRuns } from "./paired-runs.mjs";
import { callText, saying, storyOf } from "./scripted-turns.mjs";
import { greedy } from "./timed-generation.mjs";

const { AgentDirectory } = await loadDist("agents", "agent-directory.js");
const { AgentRun } = await loadDist("agents", "agent-run.js");
const { parseAgentsConfig } = await loadDist("agents", "agents-config.js");
const { Chat } = await loadDist("chat", "chat.js");

const question = "Have the story of the lantern told.";
const task = "Tell the story of the lantern.";
const team = {
  supervisor: "boss",
  agents: {
    boss: { description: "Asks others", instructions: "You ask others." },
    teller: { description: "Tells stories", instructions: "You tell stories." },
  },
};

/** The engine with holds that nothing extends: what follows a hold is prefilled when it ends. */
function withoutExtending(engine) {
  const generate = (request) => Object.assign(engine.generate(request), { extend: () => {} });
  return new Proxy(engine, {
    get(target, key) {
      const value = key === "generate" ? generate : target[key];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The supervisor, as `--agents` would make it, over a model whose turns are given by the user's message. */
async function supervisorOf(engine, turns, isEarly) {
  const chat = new Chat(isEarly ? engine : withoutExtending(engine));
  const samplings = new Map();
  for (const [message, said] of turns) samplings.set(message, await saying(engine, said));
  const scripted = {
    generate: (request) =>
      chat.generate({ ...request, sampling: samplings.get(request.messages.at(-1).content) }),
    countPromptTokens: (request) => chat.countPromptTokens(request),
  };
  const served = {
    chat: scripted,
    contextSize: engine.cache.cellsPerSequence,
    vocabularySize: engine.model.vocabularySize,
    sampling: greedy,
  };
  const config = parseAgentsConfig(team, "agents.json", {});
  const parts = { served, files: new Map(), tools: null, logger: undefined };
  const directory = new AgentDirectory(config, parts);
  return new AgentRun(directory.find("boss"), (name) => directory.find(name));
}

/** One delegation: how long the sub-agent speaks, and from its end to the supervisor's first token. */
async function delegation(engine, story, isEarly) {
  const call = callText("delegate", { agent: "teller", task });
  const turns = [
    [question, [call, "It is told."]],
    [task, [story]],
  ];
  const supervisor = await supervisorOf(engine, turns, isEarly);
  const messages = [{ role: "user", content: question }];
  let begun;
  let ended;
  let rowsBefore;
  let resumed;
  const request = { messages, sampling: greedy, stop: [], owner: "bench" };
  for await (const event of supervisor.answer(request)) {
    const { report } = event;
    if (report?.type === "output") begun ??= performance.now();
    else if (report?.event?.type === "finish") {
      ended = performance.now();
      rowsBefore = engine.stats().prefilledTokens;
    } else if (event.type === "content") {
      const rows = engine.stats().prefilledTokens - rowsBefore;
      resumed ??= { ttft: performance.now() - ended, rows, told: ended - begun };
    }
  }
  return resumed;
}

/** A sub-agent's answer that is prefilled when it ends, and one that is prefilled as it streams. */
export async function measureSubAgentsAnswer(engine, { words, runs }) {
  const story = storyOf(words);
  const tokens = (await engine.tokenize(story)).length;
  return {
    name: `resume TTFT, a sub-agent's answer of ${tokens} tokens`,
    ...(await pairedRuns(runs, {
      plain: () => delegation(engine, story, false),
      early: () => delegation(engine, story, true),
    })),
  };
}
