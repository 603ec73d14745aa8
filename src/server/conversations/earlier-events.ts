/** What viewers know from an earlier process of the rounds that a run goes on with: it is not told again. */

import { keyBelow } from "../../agents/delegation-journal.ts";
import type { ToolCall } from "../../chat/types.ts";
import type { ToolCallState } from "../../client/conversation-state.ts";
import type { DelegationState } from "../../tools/oversight.ts";
import type { Resumption } from "./held-round.ts";
import type { RunEvent, ToolEvent } from "../../tools/types.ts";
import { isToolEvent } from "../answer/client-view.ts";
import { ToldRound } from "../answer/written-round.ts";

/** A call that goes on, and begins its result anew. */
interface Repeated {
  /** What the earlier process told of it. */
  told: string;
  said: string;
}

export class EarlierEvents {
  /**
   * Ids in the stream by the ids that models gave, for each delegation whose sub-agent made the calls; the run itself is
   * the delegation "".
   */
  readonly ids = new Map<string, ReadonlyMap<string, string>>();
  readonly #calls: ReadonlyMap<string, ToolCallState>;
  readonly #outputs = new Map<string, Repeated>();
  /** How much of a sub-agent's reasoning is told again, maybe in other words. By its delegation. */
  readonly #reasoning = new Map<string, number>();
  /** That the run itself was writing. Its content is left out by `RunMapper`, which changes it. */
  readonly #round: ToldRound;

  constructor({ state, before, round, hold, written: { calls } }: Resumption) {
    this.#calls = new Map(state.toolCalls.map((call) => [call.call_id, call]));
    const ids = [
      ...Object.entries(round?.ids ?? {}),
      ...calls.map(({ call_id: id }) => [id, id] as const),
    ];
    this.#place("", new Map(ids), (id) => id, hold.calls);
    this.#round = new ToldRound({
      reasoning: state.reasoning.slice(before.reasoning.length),
      calls: calls.map((call) => call.arguments.length),
    });
  }

  /** What is new in an event of this process. Null: nothing. */
  newPart(event: RunEvent): RunEvent | null {
    return isToolEvent(event) ? this.#newPart(event, "") : this.#round.newPart(event);
  }

  /** @param delegation whose sub-agent the event is of */
  #newPart(event: RunEvent, delegation: string): RunEvent | null {
    if (event.type === "reasoning") return this.#newReasoning(event, delegation);
    if (!isToolEvent(event)) return event;
    const id = this.ids.get(delegation)?.get(event.call.id);
    const call = this.#calls.get(id ?? "");
    if (call === undefined) return event;
    if (event.type !== "tool-report") return wasTold(event, call) ? null : event;
    if (call.is_complete && call.event_type.endsWith("result")) return null;
    const { report } = event;
    if (report.type === "output") {
      const text = this.#newOutput(call, report.text);
      return text === "" ? null : { ...event, report: { ...report, text } };
    }
    if (report.type !== "agent") return event;
    const inner = this.#newPart(report.event, call.call_id);
    return inner && { ...event, report: { ...report, event: inner } };
  }

  #newReasoning(
    event: Extract<RunEvent, { type: "reasoning" }>,
    delegation: string,
  ): RunEvent | null {
    const known = this.#reasoning.get(delegation) ?? 0;
    this.#reasoning.set(delegation, Math.max(0, known - event.text.length));
    const text = event.text.slice(known);
    return text === "" ? null : { ...event, text };
  }

  /** Nothing, once the result is another one: its end tells it. */
  #newOutput({ call_id: id, content }: ToolCallState, text: string): string {
    const output = this.#outputs.get(id) ?? { told: content, said: "" };
    this.#outputs.set(id, output);
    const before = output.said;
    output.said += text;
    if (before.length >= output.told.length) return before.startsWith(output.told) ? text : "";
    return output.said.startsWith(output.told) ? output.said.slice(output.told.length) : "";
  }

  /** @param keyOf of a call of this round */
  #place(
    speaker: string,
    ids: ReadonlyMap<string, string>,
    keyOf: (callId: string) => string,
    kept: Readonly<Record<string, unknown>>,
  ): void {
    this.ids.set(speaker, ids);
    for (const [given, id] of ids) {
      const key = keyOf(given);
      const { at, round, number } = (kept[key] ?? {}) as Partial<DelegationState>;
      if (at !== "delegated") continue;
      const turns = round?.messages ?? [];
      const thought = turns.map((turn) => ("reasoning" in turn ? (turn.reasoning ?? "") : ""));
      const told = this.#calls.get(id)?.reasoning.length ?? 0;
      this.#reasoning.set(id, Math.max(0, told - thought.join("").length));
      const calls = round?.calls ?? [];
      this.#place(id, this.#idsOf(calls, id), (inner) => keyBelow(key, number!, inner), kept);
    }
  }

  /** The last calls that the stream tells of a sub-agent are those of its last round. */
  #idsOf(calls: readonly ToolCall[], delegation: string): Map<string, string> {
    const own = [...this.#calls.values()].filter(
      ({ tool_call_details: details }) => details.parent_call_id === delegation,
    );
    const idOf = (call: ToolCall): string | undefined =>
      own.findLast(
        ({ call_id: id, tool_name: name, arguments: told, progress }) =>
          name === call.name &&
          // The question may be known before the stream has told all of its call.
          (told === call.arguments ||
            (progress === "writing" && call.arguments.startsWith(told))) &&
          isNamedAfter(id, call.id),
      )?.call_id;
    return new Map(
      calls.flatMap((call) => {
        const id = idOf(call);
        return id === undefined ? [] : [[call.id, id] as const];
      }),
    );
  }
}

/** The stream numbers ids that were used before. */
function isNamedAfter(id: string, given: string): boolean {
  return id === given || (id.startsWith(`${given}_`) && /^\d+$/.test(id.slice(given.length + 1)));
}

/** A call's start, its question or its end. */
function wasTold(event: ToolEvent, { progress, asking_id: told }: ToolCallState): boolean {
  if (progress === "writing") return false;
  if (event.type === "tool-start") return true;
  if (progress === "running") return false;
  const isAsked = event.type === "tool-approval" && event.state === "asked";
  return progress !== "approval" || (isAsked && event.askingId === told);
}
