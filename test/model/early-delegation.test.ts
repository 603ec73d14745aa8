/**
 * A sub-agent's answer is prefilled into its held supervisor while it streams, on the real engine: rows are
 * counted where they enter llama_decode. What the models say is scripted. In the middle of its answer the
 * sub-agent calls a tool, which waits for the rows, so that nothing here depends on time.
 */

import { describe, expect, it, vi } from "vitest";

import { AgentRun } from "../../src/agents/agent-run.ts";
import type { ChatEvent, ChatGeneration, ChatRequest } from "../../src/chat/types.ts";
import type { EngineStats, Generation } from "../../src/engine/types.ts";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { agentDirectory, type AgentsJson } from "../support/agents.ts";
import { scripted } from "../support/engine.ts";
import { callText } from "../support/scripted-server.ts";
import { engineOfTests, watchedChat } from "../support/watched-engine.ts";

const team: AgentsJson = {
  supervisor: "boss",
  agents: {
    boss: { description: "Asks others", instructions: "You ask others." },
    teller: { description: "Tells stories", instructions: "You tell.", tools: { memory: "*" } },
  },
};
const question = "Have the story of the lantern told.";
const task = "Tell the story of the lantern.";
const halves = [0, 1].map((half) =>
  Array.from(
    { length: 9 },
    (_, line) => `${line}. Keeper ${half}: "the lantern isn't  lit" — at 12:0${line}`,
  ).join("\n"),
);
const story = halves.join("\n\n");

/** Places where the sub-agent waits until this is done. */
interface Stops {
  /** Half of its answer is told. */
  middle(): Promise<void>;
  /** All of it is told, and it has not ended. */
  end(): Promise<void>;
}

async function* withStopAtEnd(
  events: AsyncIterable<ChatEvent>,
  end: () => Promise<void>,
): AsyncGenerator<ChatEvent, void, void> {
  for await (const event of events) {
    if (event.type === "finish") await end();
    yield event;
  }
}

describe.each(["streams", "unified"] as const)("with %s", (kvLayout) => {
  const currentEngine = engineOfTests({ kvLayout, contextSize: 8192 });

  /** One delegation. `isEarly` false: no hold is extended. */
  async function delegate(isEarly: boolean, { middle, end }: Stops) {
    const engine = currentEngine();
    const says = async (...turns: string[]) =>
      scripted(await engine.tokenize(turns.map((turn) => `${turn}<|im_end|>`).join("")));
    const call = callText("delegate", { agent: "teller", task });
    const supervisorSampling = await says(call, "It is told.");
    const tellerSampling = await says(`${halves[0]}\n${callText("recall", {})}`, halves[1]!);
    const recall = defineTool("recall", "Recalls the rest.").run(async () => {
      await middle();
      return "It is recalled.";
    }, "memory");
    const runs: Generation[] = [];
    const chat = watchedChat(engine, (generation) => {
      if (!isEarly) vi.spyOn(generation, "extend").mockImplementation(() => {});
      runs.push(generation);
    });
    const generate = (request: ChatRequest): ChatGeneration => {
      if (request.messages.at(-1)?.content !== task)
        return chat.generate({ ...request, sampling: supervisorSampling });
      const answer = chat.generate({ ...request, sampling: tellerSampling });
      return {
        [Symbol.asyncIterator]: () => withStopAtEnd(answer, end),
        extend: answer.extend.bind(answer),
        resume: answer.resume.bind(answer),
        release: answer.release.bind(answer),
        cancel: answer.cancel.bind(answer),
      };
    };
    const countPromptTokens = chat.countPromptTokens.bind(chat);
    const agents = agentDirectory(team, { generate, countPromptTokens }, { tools: () => [recall] });
    const run = new AgentRun(agents.find("boss")!, (name) => agents.find(name));
    const messages = [{ role: "user" as const, content: question }];
    const request = { messages, sampling: supervisorSampling, stop: [], owner: "test" };
    const before = engine.stats();
    let content = "";
    let result = "";
    let section = 0;
    await run.answer(request, run.tools, {}, async (event) => {
      if (event.type === "content") content += event.text;
      if (event.type === "tool-end") result = event.content;
      if (event.type === "finish") section = event.usage.resumedTokens;
    });
    expect({ content, result }).toEqual({ content: "It is told.", result: story });
    const after = engine.stats();
    const count = (name: keyof EngineStats): number => after[name] - before[name];
    return { tokens: [...runs[0]!.tokens], section, count, counters: chat.counters };
  }

  it("a sub-agent's answer is prefilled while it streams; the resume computes what is left", async () => {
    const engine = currentEngine();
    const tokensOf = async (text: string): Promise<number> => (await engine.tokenize(text)).length;
    const [halfTokens, storyTokens] = [await tokensOf(halves[0]!), await tokensOf(story)];

    let rowsBeforeEnd = 0;
    const noteRows = (): void => void (rowsBeforeEnd = engine.stats().prefilledTokens);
    const rowsOfResume = (): number => engine.stats().prefilledTokens - rowsBeforeEnd;
    const late = await delegate(false, { middle: async () => {}, end: async () => noteRows() });
    const { section } = late;
    expect(section).toBeGreaterThan(storyTokens);
    expect(late.count("extendedTokens")).toBe(0);
    expect(rowsOfResume()).toBe(section);

    const { extendedTokens: extendedBefore } = engine.stats();
    const extended = async (least: number): Promise<void> => {
      await vi.waitFor(
        () => expect(engine.stats().extendedTokens - extendedBefore).toBeGreaterThanOrEqual(least),
        { timeout: 60_000, interval: 5 },
      );
    };
    // What is not known to be a token yet, and text that is not worth a pass, is left.
    const most = Math.floor(0.8 * storyTokens);
    const early = await delegate(true, {
      middle: () => extended(Math.floor(0.6 * halfTokens)),
      async end() {
        await extended(most);
        noteRows();
      },
    });
    expect(rowsOfResume()).toBeLessThan(section / 4);

    // Nothing was computed twice, or came out differently.
    expect(early.tokens).toEqual(late.tokens);
    expect(early.section).toBe(section);
    expect(early.count("resumedTokens")).toBe(late.count("resumedTokens"));
    expect(early.count("discardedTokens")).toBe(0);
    expect(early.count("recomputedTokens")).toBe(0);
    const computed =
      early.count("promptTokens") - early.count("cachedTokens") + early.count("resumedTokens");
    expect(early.count("prefilledTokens")).toBe(computed);
    // Each of the two ends two turns; a turn's last token is never computed alone.
    expect(early.count("auditedRows")).toBe(computed + early.count("generatedTokens") - 4);
    expect(early.counters).toMatchObject({ resumes: 2, rerenders: 0, unextendedHolds: 0 });
  });
});
