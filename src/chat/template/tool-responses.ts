/** For templates without tool messages: results as a field of the message whose calls they answer. */

export interface TemplateMessage {
  role: string;
  content: unknown;
  [field: string]: unknown;
}

interface TemplateCall {
  id: string;
  function: { name: string };
}

/**
 * Calls, their results and the answer after them become one message, with the answer's text: the template
 * writes a message's content behind its results.
 */
export function joinToolResults(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const joined: TemplateMessage[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    const calls = callsOf(message);
    if (calls.length === 0) {
      joined.push(message);
      continue;
    }
    const results: unknown[] = [];
    for (; messages[at + 1]?.role === "tool"; at++)
      results.push(responseOf(messages[at + 1]!, calls, results.length));
    const answer = messages[at + 1];
    const isAnswered =
      answer?.role === "assistant" && callsOf(answer).length === 0 && answer.content !== "";
    if (isAnswered) at += 1;
    joined.push({
      ...message,
      content: isAnswered ? answer.content : "",
      ...(results.length === 0 ? {} : { tool_responses: results }),
    });
  }
  return joined;
}

function callsOf(message: TemplateMessage): readonly TemplateCall[] {
  const calls = message["tool_calls"];
  return message.role === "assistant" && Array.isArray(calls) ? (calls as TemplateCall[]) : [];
}

function responseOf(
  { tool_call_id: id, content }: TemplateMessage,
  calls: readonly TemplateCall[],
  index: number,
): { name: unknown; response: unknown } {
  const call = calls.find((candidate) => candidate.id === id) ?? calls[index];
  return { name: call?.function.name ?? id, response: content };
}
