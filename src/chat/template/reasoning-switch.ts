/** Whether a model thinks before it answers: how its template is told, and how the answer's text then begins. */

import type { ReasoningMarkers, RoundReasoning } from "../../guidance/types.ts";
import type { TemplateVariables } from "../types.ts";

/** What the server wants where a request does not say. `auto`: as llama-server, which asks for thinking. */
export const reasoningDefaults = ["auto", "on", "off"] as const;
export type ReasoningDefault = (typeof reasoningDefaults)[number];

/** A template's variable that turns thinking on and off. */
export interface ReasoningSwitch {
  name: string;
  on: unknown;
  off: unknown;
  /** As it renders when nothing sets the variable. */
  isOnByDefault: boolean;
  /** False: the answer begins alike either way; llama-server takes that for a model that does not think. */
  isRecognized: boolean;
}

/** How the text after a rendering begins. `off`: thinking is switched off; a model that thinks all the same is understood. */
export type ReasoningStart = RoundReasoning | "off";

/** As llama-server has it: the reasoning of earlier turns stays, so that a conversation's prompt only grows. */
const defaults: TemplateVariables = {
  preserve_thinking: true,
  clear_thinking: false,
  truncate_history_thinking: false,
  drop_thinking: false,
};

const effortsWithoutThinking = ["none", "minimal"];

/** Values that switches take: what most templates have, and what MiniMax has. */
const pairs: readonly [on: unknown, off: unknown][] = [
  [true, false],
  ["enabled", "disabled"],
];

/** @param render a question with such variables; null when the template fails */
export function probeReasoning(
  source: string,
  markers: ReasoningMarkers | null,
  render: (variables: TemplateVariables) => string | null,
): ReasoningSwitch | null {
  // An effort is no switch: templates print it, whatever it is.
  const words = source.match(/\b(?!\w*(?:effort|strength|budget))\w*(?:think|reason)\w*/gu) ?? [];
  // Clients know one name; templates that take several take this one too.
  const names = new Set(["enable_thinking", ...words]);
  for (const name of names)
    for (const [yes, no] of pairs) {
      const [first, second] = [render({ [name]: yes }), render({ [name]: no })];
      if (first === null || second === null || first === second) continue;
      const isInverse = !isClosed(second, markers) && isClosed(first, markers);
      const [on, off] = isInverse ? [no, yes] : [yes, no];
      const isOnByDefault = render({}) !== (isInverse ? first : second);
      const isRecognized = first.slice(-16) !== second.slice(-16);
      return { name, on, off, isOnByDefault, isRecognized };
    }
  return null;
}

/**
 * All variables of a rendering. A request says by `enable_thinking`, else by `reasoning_effort`, whether the model
 * thinks; it works under whatever name the template has for it.
 */
export function reasoningVariables(
  variables: TemplateVariables,
  byDefault: ReasoningDefault,
  control: ReasoningSwitch | null,
): TemplateVariables {
  const { reasoning_effort: effort, ...others } = variables;
  // No template but a few know this effort, and some refuse it.
  const given = effort === undefined || effort === "none" ? others : variables;
  const wanted =
    others["enable_thinking"] ??
    (typeof effort === "string" ? !effortsWithoutThinking.includes(effort) : null) ??
    (byDefault === "auto" ? null : byDefault === "on");
  if (typeof wanted !== "boolean")
    return { ...defaults, enable_thinking: control?.isRecognized !== false, ...given };
  const switched = control === null ? {} : { [control.name]: wanted ? control.on : control.off };
  return { ...defaults, enable_thinking: wanted, ...switched, ...given };
}

/** @param text ends where the answer begins @param variables as `reasoningVariables` gives them */
export function reasoningStart(
  text: string,
  markers: ReasoningMarkers | null,
  control: ReasoningSwitch | null,
  variables: TemplateVariables,
): ReasoningStart {
  if (markers === null) return "no";
  if (text.trimEnd().endsWith(markers.open)) return "open";
  if (isClosed(text, markers)) return "off";
  if (control === null) return "split";
  const value = variables[control.name];
  const isOff = value === undefined ? !control.isOnByDefault : value === control.off;
  return isOff ? "off" : "split";
}

function isClosed(text: string, markers: ReasoningMarkers | null): boolean {
  return markers !== null && text.trimEnd().endsWith(markers.close);
}
