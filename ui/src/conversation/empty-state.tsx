/** The start of a conversation. */

import { FermataMark } from "../shell/icon.tsx";
import { useStore } from "../state/store.ts";
import { toolboxState } from "../state/toolbox.ts";

export function EmptyState() {
  const { status, toolbox } = useStore(toolboxState);
  const toolCount = toolbox.servers.reduce((sum, { tools }) => sum + tools.length, 0);
  return (
    <section className="empty-state" aria-label="New conversation">
      <FermataMark />
      <h2>What shall we look at?</h2>
      <p>
        {toolCount === 0
          ? "Everything stays on this machine."
          : `${toolCount} ${toolCount === 1 ? "tool is" : "tools are"} at hand. While one works, the answer is held where it stands, and goes on from there.`}
      </p>
      {status === "ready" && toolbox.servers.length === 0 && toolbox.agents.length === 0 && (
        <p>
          There are no tools yet. Start the server with <code>--mcp-command</code> or{" "}
          <code>--mcp-config</code> and the model can use yours.
        </p>
      )}
    </section>
  );
}
