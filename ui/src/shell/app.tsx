/** The page: side bar, conversation, engine; or the form that asks for a key. */

import { useEffect, useMemo, useState } from "react";
import { ConversationPage } from "../conversation/conversation-page.tsx";
import { EngineStrip } from "../engine/engine-strip.tsx";
import { InspectorDialog } from "../inspector/inspector-dialog.tsx";
import { Sidebar } from "../sidebar/sidebar.tsx";
import { show } from "../state/conversation.ts";
import { openConversationId } from "../state/route.ts";
import { session } from "../state/session.ts";
import { useStore } from "../state/store.ts";
import { ToolsDialog } from "../tools/tools-dialog.tsx";
import { Announcer } from "./announcer.tsx";
import { Header } from "./header.tsx";
import { NoticeLine } from "./notice-line.tsx";
import { KeyForm } from "./key-form.tsx";
import { ShortcutHelp } from "./shortcut-help.tsx";
import { useShortcuts } from "./use-shortcuts.ts";

type Panel = "help" | "tools" | "inspector" | null;

export function App() {
  const state = useStore(session);
  const id = useStore(openConversationId);
  const [panel, setPanel] = useState<Panel>(null);
  const [isSidebarOpen, setSidebarOpen] = useState(false);
  const panels = useMemo(
    () => ({
      help: () => setPanel("help"),
      tools: () => setPanel("tools"),
      inspector: () => setPanel("inspector"),
    }),
    [],
  );
  useShortcuts(panels);
  useEffect(() => {
    void show(id);
    setSidebarOpen(false);
  }, [id]);

  if (state === "locked") return <KeyForm />;
  return (
    <div className="app" data-sidebar-open={isSidebarOpen}>
      <Sidebar onClose={() => setSidebarOpen(false)} />
      <button
        type="button"
        className="backdrop"
        tabIndex={-1}
        aria-hidden="true"
        onClick={() => setSidebarOpen(false)}
      />
      <main>
        <Header
          isSidebarOpen={isSidebarOpen}
          onSidebar={() => setSidebarOpen(!isSidebarOpen)}
          onTools={panels.tools}
          onHelp={panels.help}
        />
        {state === "offline" && (
          <p className="offline" role="alert">
            The server does not answer. Nothing is lost; the page tries again by itself.
          </p>
        )}
        <NoticeLine />
        <ConversationPage />
        <EngineStrip onInspect={panels.inspector} />
      </main>
      {panel === "help" && <ShortcutHelp onClose={() => setPanel(null)} />}
      {panel === "tools" && <ToolsDialog onClose={() => setPanel(null)} />}
      {panel === "inspector" && <InspectorDialog onClose={() => setPanel(null)} />}
      <Announcer />
    </div>
  );
}
