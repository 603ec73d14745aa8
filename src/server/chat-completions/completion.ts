/** Chat events to the body of a chat completion that is not streamed. */

import {
  type ResponseIdentity,
  usageOfChoices,
  wireFinishReason,
  type WireFinishReason,
  type StopReason,
  stopReasonOf,
  wireUsage,
  type WireUsage,
} from "../answer/completion-parts.ts";
import { CustomInput, inputOf } from "../body/custom-input.ts";
import type { ToolCall } from "../../chat/types.ts";
import type { Answer } from "../answer/collect-answer.ts";
import type { Timings } from "../answer/token-times.ts";
import { chatLogprobs, type ChatLogprobs, wirePromptLogprobs } from "../answer/logprobs.ts";
import type { TokenRecord } from "../answer/token-record.ts";
import type { TokenWishes } from "../body/token-wishes.ts";

type WireToolCall = {
  id: string;
  /** Only where the schema has what no mask can hold, and the arguments break it. */
  validation_error?: string;
} & (
  | { type: "function"; function: { name: string; arguments: string } }
  | { type: "custom"; custom: { name: string; input: string } }
);

export interface ChatCompletion extends ResponseIdentity {
  object: "chat.completion";
  choices: WireChoice[];
  usage: WireUsage;
  /** llama-server's; of the first choice. */
  timings?: Timings | undefined;
  /** vLLM's, if they were asked for. */
  prompt_token_ids?: number[];
  prompt_logprobs?: ReturnType<typeof wirePromptLogprobs>;
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
  stop_reason?: StopReason;
  token_ids?: readonly number[];
}

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

export function chatCompletion(
  identity: ResponseIdentity,
  answers: readonly [Answer, ...Answer[]],
  shape: CompletionShape,
): ChatCompletion {
  const { timings, tokens, records, tokenBytes } = shape;
  const [first, ...others] = answers;
  return {
    ...identity,
    object: "chat.completion",
    choices: answers.map((answer, index) => wireChoice(index, answer, shape)),
    usage: wireUsage(
      usageOfChoices([first.finish.usage, ...others.map(({ finish }) => finish.usage)]),
    ),
    timings,
    ...(tokens?.ids ? { prompt_token_ids: [...(records[0]?.prompt ?? [])] } : {}),
    ...(tokens?.promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: wirePromptLogprobs(records[0]?.promptLogprobs ?? [], tokenBytes) }),
  };
}

function wireChoice(
  index: number,
  answer: Answer,
  { withLogprobs, customTools, tokens, records }: CompletionShape,
): WireChoice {
  const { content, reasoning, logprobs, finish } = answer;
  const calls = [
    ...answer.calls.map((call) => wireToolCall(call, customTools, true)),
    ...answer.cutCalls.map((call) => wireToolCall(call, customTools, false)),
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
    ...(tokens?.ids ? { token_ids: records[index]?.generated ?? [] } : {}),
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
