/** Lets the server of a tool ask the model while the call that it works on is held. */

import type { ChatGeneration, ChatRequest, ToolDefinition } from "../chat/types.ts";
import { FermataError } from "../errors.ts";
import type { SampleRequest, SampleResult } from "./types.ts";

/** A request whose call's server asks. */
interface Caller {
  chat: { generate(request: ChatRequest): ChatGeneration };
  request: Omit<ChatRequest, "tools" | "toolMode">;
  /** The tools in its prompt. */
  offered: readonly ToolDefinition[];
}

/**
 * The held sequence stays as it is. With the caller's messages the prompt begins as its prompt does, so their cells are
 * shared and only the new messages are computed.
 * @throws FermataError | the reason of `signal`
 */
export async function sample(
  { chat, request, offered }: Caller,
  { messages, maxTokens, temperature, stop, withCaller, signal }: SampleRequest,
): Promise<SampleResult> {
  const { templateVariables, owner, client, cacheSalt, logger, watch } = request;
  const { script: _script, ...sampling } = request.sampling;
  const generation = chat.generate({
    messages: withCaller ? [...request.messages, ...messages] : messages,
    tools: withCaller ? [...offered] : [],
    toolMode: "none",
    templateVariables,
    sampling: temperature === undefined ? sampling : { ...sampling, temperature },
    stop,
    maxTokens,
    signal,
    owner,
    client,
    cacheSalt,
    logger,
    watch: watch && (() => watch("sampling")),
  });
  let text = "";
  for await (const event of generation) {
    if (event.type === "content") text += event.text;
    if (event.type !== "finish") continue;
    const { reason, stopString, usage } = event;
    if (reason === "cancelled") signal.throwIfAborted();
    return { text, reason, stopString, tokens: usage.generatedTokens };
  }
  throw new FermataError("internal_error", "The events ended without finish.");
}
