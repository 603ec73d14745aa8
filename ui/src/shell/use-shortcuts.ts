/** Runs the action of a shortcut. Most press the button for that action. */

import { useEffect } from "react";
import { newConversation } from "../state/actions.ts";
import { conversationList } from "../state/conversation-list.ts";
import { openConversation, openConversationId } from "../state/route.ts";
import { type ShortcutName, shortcutOf } from "./shortcuts.ts";

type Panels = Record<"help" | "tools" | "inspector", () => void>;

export function useShortcuts(panels: Panels): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
      const name = shortcutOf(event);
      if (name === null) return;
      if (run(name, panels)) event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [panels]);
}

function run(name: ShortcutName, panels: Panels): boolean {
  switch (name) {
    case "help":
    case "tools":
    case "inspector":
      panels[name]();
      return true;
    case "write":
      return focus("#message");
    case "new":
      newConversation();
      requestAnimationFrame(() => focus("#message"));
      return true;
    case "search":
      return focus("#search");
    case "previous":
      return move(-1);
    case "next":
      return move(1);
    case "approve":
      return press("[data-approve]");
    case "deny":
      return press("[data-deny]");
    case "retry":
      return press(".message.assistant [data-retry]", "last");
    case "timeline":
      return press(".message.assistant [aria-label=Timeline]", "last");
    case "stop":
      return press(".send.stop");
  }
}

function focus(selector: string): boolean {
  const element = document.querySelector<HTMLElement>(selector);
  element?.focus();
  return element !== null;
}

function press(selector: string, which: "first" | "last" = "first"): boolean {
  const all = [...document.querySelectorAll<HTMLElement>(selector)];
  const element = which === "first" ? all[0] : all.at(-1);
  element?.click();
  return element !== undefined;
}

function move(step: number): boolean {
  const ids = conversationList.get().conversations.map(({ id }) => id);
  const at = ids.indexOf(openConversationId.get() ?? "");
  const next = ids[at === -1 ? 0 : at + step];
  if (next !== undefined) openConversation(next);
  return true;
}
