/** MCP servers with their state and tools, which of them the model may use, and the sub-agents. */

import { useState } from "react";
import { messageOf } from "../api/request.ts";
import type { ToolServer } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { Dialog } from "../shell/dialog.tsx";
import { Icon } from "../shell/icon.tsx";
import { changeSettings, useSettings } from "../state/settings.ts";
import { useStore } from "../state/store.ts";
import { refreshTools, toolboxState } from "../state/toolbox.ts";

export function ToolsDialog({ onClose }: { onClose(): void }) {
  const { status, toolbox, error } = useStore(toolboxState);
  const { tools: selected } = useSettings();
  const [problem, setProblem] = useState<string | null>(null);
  const all = toolbox.servers.flatMap(({ tools }) => tools.map(({ name }) => name));
  const chosen = selected ?? all;
  const gone = status === "ready" ? chosen.filter((name) => !all.includes(name)) : [];

  const choose = async (names: readonly string[]): Promise<void> => {
    const isAll = all.every((name) => names.includes(name));
    try {
      setProblem(null);
      await changeSettings({ tools: isAll ? null : [...names] });
    } catch (cause) {
      setProblem(messageOf(cause));
    }
  };
  const toggle = (names: readonly string[], isOn: boolean): void => {
    const others = chosen.filter((name) => !names.includes(name));
    void choose(isOn ? [...others, ...names] : others);
  };

  return (
    <Dialog title="Tools" onClose={onClose}>
      {(problem ?? error) !== null && <p role="alert">{problem ?? error}</p>}
      {status === "failed" && (
        <button type="button" onClick={() => void refreshTools()}>
          Try again
        </button>
      )}
      {toolbox.servers.length === 0 && status === "ready" && (
        <p>
          No MCP server is configured. Start with <code>--mcp-config FILE</code> or{" "}
          <code>--mcp-command PROGRAM</code> to give the model tools.
        </p>
      )}
      {gone.length > 0 && (
        <p className="field-problem">
          Chosen, but no longer offered: {gone.map(showControls).join(", ")}.{" "}
          <button type="button" className="quiet" onClick={() => toggle(gone, false)}>
            Forget
          </button>
        </p>
      )}
      {toolbox.servers.map((server) => (
        <ServerView key={server.name} server={server} chosen={chosen} onToggle={toggle} />
      ))}
      {toolbox.agents.length > 0 && (
        <section className="tool-server" aria-label="Sub-agents">
          <h3>
            <Icon name="agent" /> Sub-agents
          </h3>
          <dl className="agent-list">
            {toolbox.agents.map(({ name, description }) => (
              <div key={name}>
                <dt>{showControls(name)}</dt>
                <dd dir="auto">{showControls(description)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </Dialog>
  );
}

interface ServerProps {
  server: ToolServer;
  chosen: readonly string[];
  onToggle(names: readonly string[], isOn: boolean): void;
}

function ServerView({ server, chosen, onToggle }: ServerProps) {
  const { name, transport, state, error, tools } = server;
  const names = tools.map((tool) => tool.name);
  const isAllOn = names.length > 0 && names.every((each) => chosen.includes(each));
  return (
    <section className="tool-server" aria-label={`Server ${name}`}>
      <h3>
        <span className="server-state" data-state={state} aria-hidden="true" />
        {showControls(name)}
        <small>
          {state} · {transport} · {tools.length} {tools.length === 1 ? "tool" : "tools"}
        </small>
        {tools.length > 1 && (
          <button type="button" className="quiet" onClick={() => onToggle(names, !isAllOn)}>
            {isAllOn ? "None" : "All"}
          </button>
        )}
      </h3>
      {error !== null && <p className="field-problem">{showControls(error)}</p>}
      <ul>
        {tools.map((tool) => (
          <li key={tool.name}>
            <label>
              <input
                type="checkbox"
                checked={chosen.includes(tool.name)}
                onChange={(event) => onToggle([tool.name], event.target.checked)}
              />
              <span>
                <b>{showControls(tool.name)}</b>
                {tool.read_only && <small className="tag">reads only</small>}
                {tool.approval === "always" && <small className="tag">asks first</small>}
                <span className="tool-description" dir="auto">
                  {showControls(tool.description)}
                </span>
              </span>
            </label>
          </li>
        ))}
      </ul>
    </section>
  );
}
