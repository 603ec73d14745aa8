/** All shortcuts. The handler and the help read this table. */

export type ShortcutName =
  | "help"
  | "write"
  | "new"
  | "search"
  | "previous"
  | "next"
  | "tools"
  | "retry"
  | "timeline"
  | "inspector"
  | "approve"
  | "deny"
  | "stop";

interface Shortcut {
  keys: string;
  what: string;
  matches(event: KeyboardEvent, isTyping: boolean): boolean;
}

/** Keys by position: with Alt some layouts produce other letters. */
function alt(code: string): Shortcut["matches"] {
  return (event) => event.altKey && !event.ctrlKey && !event.metaKey && event.code === code;
}

function plain(key: string): Shortcut["matches"] {
  return (event, isTyping) =>
    !isTyping && !event.altKey && !event.ctrlKey && !event.metaKey && event.key === key;
}

export const shortcuts: Readonly<Record<ShortcutName, Shortcut>> = {
  write: { keys: "/", what: "Write a message", matches: plain("/") },
  new: { keys: "Alt N", what: "New conversation", matches: alt("KeyN") },
  search: {
    keys: "Ctrl K",
    what: "Search conversations",
    matches: (event) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k",
  },
  previous: { keys: "Alt ↑", what: "Previous conversation", matches: alt("ArrowUp") },
  next: { keys: "Alt ↓", what: "Next conversation", matches: alt("ArrowDown") },
  tools: { keys: "Alt T", what: "Tools and servers", matches: alt("KeyT") },
  approve: { keys: "Alt A", what: "Approve the call that waits", matches: alt("KeyA") },
  deny: { keys: "Alt D", what: "Deny the call that waits", matches: alt("KeyD") },
  retry: { keys: "Alt R", what: "Try the last answer again", matches: alt("KeyR") },
  timeline: { keys: "Alt L", what: "Timeline of the last answer", matches: alt("KeyL") },
  inspector: { keys: "Alt I", what: "How the last answers came about", matches: alt("KeyI") },
  stop: { keys: "Esc", what: "Stop the answer", matches: plain("Escape") },
  help: { keys: "?", what: "This help", matches: plain("?") },
};

/** In the composer. */
export const writingKeys: readonly (readonly [keys: string, what: string])[] = [
  ["Enter", "Send"],
  ["Shift Enter", "New line"],
  ["↑ in an empty field", "Edit your last message"],
  ["Esc", "Stop the answer"],
];

export function shortcutOf(event: KeyboardEvent): ShortcutName | null {
  const target = event.target instanceof HTMLElement ? event.target : null;
  const isTyping = Boolean(target?.closest("input, textarea, select"));
  const names = Object.keys(shortcuts) as ShortcutName[];
  return names.find((name) => shortcuts[name].matches(event, isTyping)) ?? null;
}
