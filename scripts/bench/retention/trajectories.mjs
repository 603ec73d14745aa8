// What the agents of the retention load say and read. The models' weights are random: an answer
// stands for a tool call, and what follows it in a trajectory comes as the next message.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { wordsFrom } from "../agents/dialogue.mjs";

/** A number from 0 to 1, always the same for two seeds. */
function fraction(seed, index) {
  const mixed = Math.imul(seed * 7919 + index * 104729 + 12345, 2654435761) >>> 0;
  return (Math.imul(mixed ^ (mixed >>> 15), 2246822519) >>> 0) / 2 ** 32;
}

/** Most tools are quick and a few take long: a median of 2 s, one in ten over 6 s, none over 12 s. Times `toolTimes`. */
function toolMs(seed, turn, { toolTimes }) {
  return toolTimes * Math.min(12_000, 1200 * (1 - fraction(seed, turn)) ** -0.7);
}

/**
 * One coding agent: a context of its own of about 1,000 tokens, then results of 30 to 250 words.
 * Returns { messages, steps }: each step is what a tool returns, after `toolMs` milliseconds.
 */
function codingTrajectory(agent, load) {
  const { turns, contextWords } = load;
  return {
    messages: [
      { role: "system", content: `Agent ${agent}. ${wordsFrom(7 + agent, contextWords)}` },
      { role: "user", content: wordsFrom(100 + agent, 40) },
    ],
    steps: Array.from({ length: turns - 1 }, (_, turn) => ({
      toolMs: toolMs(agent + 1, turn, load),
      text: `Result: ${wordsFrom(1000 + agent * 50 + turn, 30 + Math.floor(220 * fraction(agent + 500, turn)))}`,
    })),
  };
}

export function codingTrajectories(load) {
  return Array.from({ length: load.agents }, (_, agent) => codingTrajectory(agent, load));
}

/** A recorded dialogue of tau-bench: its system prompt, and what users and tools said between answers. */
function recordedTrajectory({ traj: [system, ...rest] }, agent, load) {
  const said = [[]];
  for (const { role, content } of rest) {
    if (role === "assistant") said.push([]);
    else said.at(-1).push(content ?? "");
  }
  const texts = said.map((parts) => parts.join("\n")).filter((text) => text !== "");
  return {
    messages: [
      { role: "system", content: system.content },
      { role: "user", content: texts[0] },
    ],
    steps: texts
      .slice(1, load.turns)
      .map((text, turn) => ({ text, toolMs: toolMs(agent + 1, turn, load) })),
  };
}

/** Real tool dialogues: `data` is a folder that has tau-bench/gpt-4o-airline.json. They share a system prompt. */
export function recordedTrajectories(data, load) {
  const recorded = JSON.parse(readFileSync(join(data, "tau-bench", "gpt-4o-airline.json"), "utf8"));
  return recorded
    .slice(0, load.agents)
    .map((dialogue, agent) => recordedTrajectory(dialogue, agent, load));
}
