/** The events of a run for clients of wires with one text per answer. */

import { RoundText } from "../../chat/answer/round-text.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent, ToolEvent, ToolOutcome } from "../../tools/types.ts";
import { answer, choice, real, string, type ValueOf, whole } from "../body/shapes.ts";
import type { ToolMode } from "./target.ts";

/**
 * The texts of the rounds become one, a blank line between them. Internal mode hides calls and their results: a
 * client's SDK would run the calls again.
 * @param tellsTools the client asked what the tools do @returns null: the client does not see the event
 */
export function clientView(
  mode: ToolMode,
  tellsTools: boolean,
): (event: RunEvent) => RunEvent | null {
  const texts = new Map<string, RoundText>();
  const told = (type: "content" | "reasoning", text: string): string => {
    const whole = texts.get(type) ?? new RoundText();
    texts.set(type, whole);
    return whole.add(text);
  };
  return (event) => {
    switch (event.type) {
      case "hold":
        for (const text of texts.values()) text.endRound();
        return null;
      case "content":
      case "reasoning":
        return { ...event, text: told(event.type, event.text) };
      case "call-start":
      case "call-arguments":
      case "call-end":
        return mode.kind === "external" ? event : null;
      default:
        return !isToolEvent(event) || tellsTools ? event : null;
    }
  };
}

/** Reasoning becomes content between the markers that clients look for. Reasoning that is cut has no closing one. */
export function reasoningInContent(sink: Sink<RunEvent>): Sink<RunEvent> {
  let isOpen = false;
  const say = async (text: string): Promise<void> => sink({ type: "content", text });
  return async (event) => {
    if (event.type === "reasoning") {
      if (event.text === "") return;
      await say(isOpen ? event.text : `<think>\n${event.text}`);
      isOpen = true;
      return;
    }
    if (isOpen && (event.type === "content" || event.type === "call-start")) {
      isOpen = false;
      await say("\n</think>\n\n");
    }
    await sink(event);
  };
}

/** What runs while a chat completion pauses, for clients that ask for it: never arguments or results. */
export const toolStatusShape = answer(
  {
    call_id: string,
    name: string,
    server: string,
    // `approval`: a person is asked.
    state: choice("approval", "running", "done", "failed", "denied"),
  },
  // `agent`: the sub-agent that made the call.
  { agent: string, message: string, progress: real, total: real, milliseconds: whole },
);
export type ToolStatus = ValueOf<typeof toolStatusShape>;

export const stateOfOutcome: Record<ToolOutcome, ToolStatus["state"]> = {
  ok: "done",
  error: "failed",
  timeout: "failed",
  cancelled: "failed",
  denied: "denied",
};
/** A call whose question nobody answers runs on. */
export function stateAfter({
  state,
  question,
}: Extract<ToolEvent, { type: "tool-approval" }>): "approval" | "running" | "denied" {
  if (state === "asked") return "approval";
  return state === "denied" && question === undefined ? "denied" : "running";
}

export function isToolEvent(event: RunEvent): event is ToolEvent {
  return event.type.startsWith("tool-");
}

/** @returns null: it says nothing of a tool's state */
export function toolStatus(event: ToolEvent, agent?: string): ToolStatus | null {
  const { call, server } = event;
  const status = {
    call_id: call.id,
    name: call.name,
    server,
    ...(agent === undefined ? {} : { agent }),
  };
  switch (event.type) {
    case "tool-start":
      return { ...status, state: "running" };
    case "tool-approval":
      return { ...status, state: stateAfter(event) };
    case "tool-end": {
      const milliseconds = Math.round(event.milliseconds);
      return { ...status, state: stateOfOutcome[event.outcome], milliseconds };
    }
    case "tool-report": {
      const { report } = event;
      if (report.type === "agent")
        return isToolEvent(report.event) ? toolStatus(report.event, report.agent) : null;
      if (report.type === "output") return null;
      const { type: _type, ...progress } = report;
      return { ...status, state: "running", ...(progress as Partial<ToolStatus>) };
    }
  }
}

/** Reasoning is not told. */
export function withoutReasoning(sink: Sink<RunEvent>): Sink<RunEvent> {
  return async (event) => {
    if (event.type !== "reasoning") await sink(event);
  };
}

/** The beginning of the answer, which the client sent, is told first. */
export function withBeginning(text: string, sink: Sink<RunEvent>): Sink<RunEvent> {
  let isTold = false;
  return async (event) => {
    if (!isTold && event.type !== "progress") {
      isTold = true;
      await sink({ type: "content", text });
    }
    await sink(event);
  };
}
