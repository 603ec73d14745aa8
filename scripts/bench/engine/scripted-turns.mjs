import { greedy } from "./timed-generation.mjs";

const endOfTurn = "<|im_end|>";
const words = ["harbour", "lantern", "keeper", "river", "letter", "garden", "captain", "bridge"];

export function storyOf(count) {
  return Array.from({ length: count }, (_, at) => words[(at * 7 + (at >> 3)) % 8]).join(" ");
}

export function callText(name, args) {
  return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}

/** Greedy sampling of a model that says these turns, whatever its weights are. */
export async function saying(engine, turns) {
  const text = turns.map((turn) => turn + endOfTurn).join("");
  return { ...greedy, script: await engine.tokenize(text) };
}
