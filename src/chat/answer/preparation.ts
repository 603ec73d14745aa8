/** What an answer is made of, before it enters the queue. */

import type { Prompt } from "../prompt/prompt.ts";
import type { PromptMarks } from "../prompt/marks.ts";
import type { ChatCounters, ChatRequest } from "../types.ts";
import type { EngineRun } from "./engine-run.ts";
import { type GuidanceContext, GuidedRounds } from "./guided-rounds.ts";
import { recallRound } from "./turn-memory.ts";

interface Prepared {
  guided: GuidedRounds;
  prompt: Prompt;
  marks: PromptMarks | null;
}

/** Does what may refuse the request. @throws FermataError of status 400; cancelled: after the step that was under way */
export async function prepareAnswer(
  request: ChatRequest,
  context: GuidanceContext & { counters: ChatCounters },
  run: EngineRun,
): Promise<Prepared> {
  const { prompts, counters } = context;
  if (request.heldTurn) recallRound(prompts, request, request.heldTurn);
  const guided = await GuidedRounds.create(request, context);
  run.throwIfCancelled();
  const prompt = await prompts.build(request);
  run.throwIfCancelled();
  request.onPrompt?.(prompt.tokens);
  if (prompt.spliced) counters.splices += 1;
  const marks = await prompts.marksOf(prompt, request);
  await run.prepare();
  run.throwIfCancelled();
  return { guided, prompt, marks };
}
