/** Title, model or agent, tools, theme and help. */

import { useEffect } from "react";
import { showControls } from "../markdown/safe-text.ts";
import { openConversationOf, openState } from "../state/conversation.ts";
import { showFailure } from "../state/notice.ts";
import { changeSettings, useSettings } from "../state/settings.ts";
import { useSelected, useStore } from "../state/store.ts";
import { setTheme, type Theme, theme } from "../state/theme.ts";
import { toolboxState } from "../state/toolbox.ts";
import { Icon } from "./icon.tsx";
import { IconButton } from "./icon-button.tsx";

interface HeaderProps {
  isSidebarOpen: boolean;
  onSidebar(): void;
  onTools(): void;
  onHelp(): void;
}

const nextTheme: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const themeWords: Record<Theme, string> = {
  system: "as the system",
  light: "light",
  dark: "dark",
};

export function Header({ isSidebarOpen, onSidebar, onTools, onHelp }: HeaderProps) {
  const title = useSelected(openState, openConversationOf)?.title;
  const current = useStore(theme);
  useEffect(() => {
    document.title = title ? `${showControls(title)} · Fermata` : "Fermata";
  }, [title]);
  const themeLabel = `Colours: ${themeWords[current]}`;
  return (
    <header className="page-header">
      <IconButton
        icon="menu"
        label="Conversations"
        className="sidebar-toggle"
        aria-expanded={isSidebarOpen}
        aria-controls="sidebar"
        onClick={onSidebar}
      />
      <h1 dir="auto">{title ? showControls(title) : "New conversation"}</h1>
      <ModelChoice />
      <ToolsButton onTools={onTools} />
      <IconButton icon="theme" label={themeLabel} onClick={() => setTheme(nextTheme[current])} />
      <IconButton icon="help" label="Keyboard help" className="help-button" onClick={onHelp} />
    </header>
  );
}

function ModelChoice() {
  const { toolbox } = useStore(toolboxState);
  const { model } = useSettings();
  const { models, agents } = toolbox;
  const chosen = model ?? models[0]?.id ?? "";
  if (models.length === 0) return null;
  const isKnown = [...models.map(({ id }) => id), ...agents.map(({ name }) => name)].includes(
    chosen,
  );
  const change = (wanted: string): void => {
    void changeSettings({ model: wanted }).catch(showFailure);
  };
  return (
    <span className="select">
      <select
        aria-label="Model or agent"
        value={chosen}
        onChange={(event) => change(event.target.value)}
      >
        {!isKnown && <option value={chosen}>{chosen}</option>}
        <optgroup label="Models">
          {models.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </optgroup>
        {agents.length > 0 && (
          <optgroup label="Agents">
            {agents.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </optgroup>
        )}
      </select>
      <Icon name="down" />
    </span>
  );
}

function ToolsButton({ onTools }: { onTools(): void }) {
  const { toolbox } = useStore(toolboxState);
  const { tools: chosen = null } = useSettings();
  const all = toolbox.servers.flatMap(({ tools }) => tools.map(({ name }) => name));
  const hasTrouble = toolbox.servers.some(
    ({ state }) => state === "failed" || state === "restarting",
  );
  const used = all.filter((name) => chosen?.includes(name)).length;
  const count = chosen === null ? `${all.length}` : `${used} of ${all.length}`;
  return (
    <button
      type="button"
      className="icon-button labelled tools-button"
      aria-label={`Tools: ${count}${hasTrouble ? ", a server has failed" : ""}`}
      title="Tools and servers"
      onClick={onTools}
    >
      <Icon name={hasTrouble ? "warning" : "tool"} />
      <span>{count}</span>
    </button>
  );
}
