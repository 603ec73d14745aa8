/** Chat events to the body of a chat completion that is not streamed. */

import {
  choiceExtras,
  finishReason,
  promptExtras,
  type ResponseIdentity,
  stopReasonOf,
  timings,
  usage,
  usageOfChoices,
  wireFinishReason,
  wireUsage,
} from "../answer/completion-parts.ts";
import { CustomInput, inputOf } from "../body/custom-input.ts";
import {
  answer,
  choice,
  contentToken,
  list,
  nothing,
  nullable,
  oneOf,
  string,
  type ValueOf,
  whole,
} from "../body/shapes.ts";
import type { ToolCall } from "../../chat/types.ts";
import type { Answer } from "../answer/collect-answer.ts";
import type { Timings } from "../answer/token-times.ts";
import { chatLogprobs, wirePromptLogprobs } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import type { TokenWishes } from "../body/token-wishes.ts";

// Only where the schema has what no mask can enforce, and the arguments break it.
const callExtras = { validation_error: string };
const toolCall = oneOf(
  answer(
    {
      id: string,
      type: choice("function"),
      function: answer({ name: string, arguments: string }),
    },
    callExtras,
  ),
  answer(
    { id: string, type: choice("custom"), custom: answer({ name: string, input: string }) },
    callExtras,
  ),
);

const message = answer(
  { role: choice("assistant"), content: nullable(string), refusal: nothing },
  {
    reasoning_content: string,
    tool_calls: list(toolCall),
    // The same of an answer that was to be a document.
    validation_error: string,
    // What the answer lacks, and why.
    warnings: list(string),
  },
);

const choiceOf = answer(
  {
    index: whole,
    message,
    logprobs: nullable(answer({ content: nullable(list(contentToken)), refusal: nothing })),
    finish_reason: finishReason,
  },
  choiceExtras,
);

export const chatCompletion = {
  id: string,
  object: choice("chat.completion"),
  created: whole,
  model: string,
  system_fingerprint: string,
  choices: list(choiceOf),
  usage,
};

/** llama-server's, of the first choice, and vLLM's, if they were asked for. */
export const chatCompletionExtras = { timings, ...promptExtras };

const completion = answer(chatCompletion, chatCompletionExtras);
export type ChatCompletion = ValueOf<typeof completion>;
type WireToolCall = ValueOf<typeof toolCall>;
type WireChoice = ValueOf<typeof choiceOf>;

export interface CompletionShape {
  /** They were asked for. */
  withLogprobs: boolean;
  /** Names of the tools whose input is text. */
  customTools: ReadonlySet<string>;
  timings?: Timings | undefined;
  tokens: TokenWishes | undefined;
  /** Of the choices. */
  records: readonly TokenRecord[];
  tokenBytes(token: number): Uint8Array;
}

export function wireCompletion(
  identity: ResponseIdentity,
  answers: readonly [Answer, ...Answer[]],
  shape: CompletionShape,
): ChatCompletion {
  const { tokens, records, tokenBytes } = shape;
  const [first, ...others] = answers;
  return {
    ...identity,
    object: "chat.completion",
    choices: answers.map((one, index) => wireChoice(index, one, shape)),
    usage: wireUsage(
      usageOfChoices([first.finish.usage, ...others.map(({ finish }) => finish.usage)]),
    ),
    timings: shape.timings,
    ...(tokens?.ids ? { prompt_token_ids: [...(records[0]?.prompt ?? [])] } : {}),
    ...(tokens?.promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: wirePromptLogprobs(records[0]?.promptLogprobs ?? [], tokenBytes) }),
  };
}

function wireChoice(
  index: number,
  given: Answer,
  { withLogprobs, customTools, tokens, records }: CompletionShape,
): WireChoice {
  const { content, reasoning, logprobs, finish } = given;
  const calls = [
    ...given.calls.map((call) => wireToolCall(call, customTools, true)),
    ...given.cutCalls.map((call) => wireToolCall(call, customTools, false)),
  ];
  return {
    index,
    message: {
      role: "assistant",
      content: content === "" && calls.length > 0 ? null : content,
      refusal: null,
      ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(finish.problem === undefined ? {} : { validation_error: finish.problem }),
      ...(finish.warnings === undefined ? {} : { warnings: finish.warnings }),
    },
    logprobs: chatLogprobs(withLogprobs ? logprobs : null, tokens?.namesAsIds),
    finish_reason: wireFinishReason(finish.reason),
    ...stopReasonOf(finish),
    ...(tokens?.ids ? { token_ids: [...(records[index]?.generated ?? [])] } : {}),
  };
}

/** @param isWhole else it is told as far as it came, as in a stream: the finish reason says that it was cut */
function wireToolCall(
  { id, name, arguments: text, problem }: ToolCall,
  customTools: ReadonlySet<string>,
  isWhole: boolean,
): WireToolCall {
  const flag = problem === undefined ? {} : { validation_error: problem };
  if (customTools.has(name)) {
    const input = isWhole ? inputOf(text) : new CustomInput().add(text);
    return { id, type: "custom", custom: { name, input }, ...flag };
  }
  const whole = text === "" && isWhole ? "{}" : text;
  return { id, type: "function", function: { name, arguments: whole }, ...flag };
}
