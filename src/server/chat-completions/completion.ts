/** Chat events to the body of a chat completion that is not streamed. */

import {
  type ResponseIdentity,
  usageOfChoices,
  wireFinishReason,
  type WireFinishReason,
  wireUsage,
  type WireUsage,
} from "../answer/completion-parts.ts";
import type { ToolCall } from "../../chat/types.ts";
import type { Answer } from "../answer/collect-answer.ts";
import type { Timings } from "../answer/token-times.ts";
import { chatLogprobs, type ChatLogprobs } from "../answer/logprobs.ts";

interface WireToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  /** Only where the schema has what no mask can hold, and the arguments break it. */
  validation_error?: string;
}

export interface ChatCompletion extends ResponseIdentity {
  object: "chat.completion";
  choices: WireChoice[];
  usage: WireUsage;
  /** llama-server's; of the first choice. */
  timings?: Timings | undefined;
}

interface WireChoice {
  index: number;
  message: {
    role: "assistant";
    content: string | null;
    refusal: null;
    reasoning_content?: string;
    tool_calls?: WireToolCall[];
    /** The same of an answer that was to be a document. */
    validation_error?: string;
    /** What the answer lacks, and why. */
    warnings?: string[];
  };
  logprobs: ChatLogprobs | null;
  finish_reason: WireFinishReason;
}

/** @param withLogprobs they were asked for */
export function chatCompletion(
  identity: ResponseIdentity,
  answers: readonly [Answer, ...Answer[]],
  withLogprobs: boolean,
  timings?: Timings,
): ChatCompletion {
  const [first, ...others] = answers;
  return {
    ...identity,
    object: "chat.completion",
    choices: answers.map((answer, index) => wireChoice(index, answer, withLogprobs)),
    usage: wireUsage(
      usageOfChoices([first.finish.usage, ...others.map(({ finish }) => finish.usage)]),
    ),
    timings,
  };
}

function wireChoice(index: number, answer: Answer, withLogprobs: boolean): WireChoice {
  const { content, reasoning, logprobs, finish } = answer;
  const calls = [...answer.calls.map(wireToolCall), ...answer.cutCalls.map(wireCutCall)];
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
    logprobs: chatLogprobs(withLogprobs ? logprobs : null),
    finish_reason: wireFinishReason(finish.reason),
  };
}

/** As far as it came, as in a stream: the finish reason says that it was cut. */
function wireCutCall({ id, name, arguments: text }: ToolCall): WireToolCall {
  return { id, type: "function", function: { name, arguments: text } };
}

function wireToolCall({ id, name, arguments: text, problem }: ToolCall): WireToolCall {
  return {
    id,
    type: "function",
    function: { name, arguments: text === "" ? "{}" : text },
    ...(problem === undefined ? {} : { validation_error: problem }),
  };
}
