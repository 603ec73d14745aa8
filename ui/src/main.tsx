import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./shell/app.tsx";
import { openState, refresh } from "./state/conversation.ts";
import { refreshList } from "./state/conversation-list.ts";
import { watchEngine } from "./state/engine.ts";
import { returns, unlockByLink } from "./state/session.ts";
import { onTabChange } from "./state/tabs.ts";
import { refreshTools } from "./state/toolbox.ts";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/conversation.css";
import "./styles/turn.css";
import "./styles/markdown.css";
import "./styles/engine.css";

const toolsEveryMs = 15_000;

function readAll(): void {
  void refreshList();
  void refreshTools();
  void refresh();
}

const forgetHash = (): void => history.replaceState(null, "", location.pathname);
// What is sent before the key has opened the session is refused.
void unlockByLink(location.hash, forgetHash).then(() => {
  watchEngine();
  readAll();
});
returns.subscribe(readAll);
setInterval(() => {
  if (document.visibilityState === "visible") void refreshTools();
}, toolsEveryMs);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") readAll();
});
onTabChange((id) => {
  void refreshList();
  if (id !== null && id === openState.get()?.id) void refresh();
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
