/** Which conversation the address names: `/c/<id>`, or none at `/`. */

import { Store } from "./store.ts";

function current(): string | null {
  const id = /^\/c\/([^/]+)$/.exec(location.pathname)?.[1];
  return id === undefined ? null : decodeURIComponent(id);
}

export const openConversationId = new Store<string | null>(current());

addEventListener("popstate", () => openConversationId.set(current()));

export function openConversation(id: string | null, how: "push" | "replace" = "push"): void {
  if (id === openConversationId.get()) return;
  const path = id === null ? "/" : `/c/${encodeURIComponent(id)}`;
  if (how === "push") history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  openConversationId.set(id);
}
