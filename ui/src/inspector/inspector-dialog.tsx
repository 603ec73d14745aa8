/** How the last answers came about, live: what each is at, who waits for whom, and the rows that were computed. */

import { useEffect, useState } from "react";
import type { Trace } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { Dialog } from "../shell/dialog.tsx";
import { useStore } from "../state/store.ts";
import { tracesState, watchTraces } from "../state/traces.ts";
import { formatMs } from "../turn/timeline.ts";
import { stateWords } from "./trace.ts";
import { TraceView } from "./trace-view.tsx";

export function InspectorDialog({ onClose }: { onClose(): void }) {
  const { traces, error } = useStore(tracesState);
  const [chosenId, setChosenId] = useState<string | null>(null);
  useEffect(watchTraces, []);
  const chosen = traces?.find(({ id }) => id === chosenId) ?? traces?.[0] ?? null;
  useEffect(() => {
    // What is shown stays when newer answers come.
    if (chosenId === null && chosen !== null) setChosenId(chosen.id);
  }, [chosenId, chosen]);
  return (
    <Dialog title="Inspector" onClose={onClose}>
      <div className="inspector">
        {error !== null && <p role="alert">{error}</p>}
        <div className="inspector-list" tabIndex={0} role="region" aria-label="Last answers">
          <table>
            <thead>
              <tr>
                <th scope="col">Answer</th>
                <th scope="col">State</th>
                <th scope="col">Time</th>
                <th scope="col">Read</th>
                <th scope="col">Cached</th>
                <th scope="col">Computed</th>
                <th scope="col">Written</th>
              </tr>
            </thead>
            <tbody>
              {(traces ?? []).map((trace) => (
                <TraceRow
                  key={trace.id}
                  trace={trace}
                  isChosen={trace.id === chosen?.id}
                  onChoose={() => setChosenId(trace.id)}
                />
              ))}
            </tbody>
          </table>
          {traces?.length === 0 && <p className="muted">Nothing was answered yet.</p>}
        </div>
        <div className="inspector-trace" tabIndex={0} role="region" aria-label="Chosen answer">
          {chosen !== null && <TraceView trace={chosen} />}
        </div>
      </div>
    </Dialog>
  );
}

interface RowProps {
  trace: Trace;
  isChosen: boolean;
  onChoose(): void;
}

function TraceRow({ trace, isChosen, onChoose }: RowProps) {
  const { id, endpoint, status, duration_ms: duration, rows } = trace;
  return (
    <tr data-status={status} data-chosen={isChosen}>
      <th scope="row">
        <button
          type="button"
          className="quiet"
          aria-pressed={isChosen}
          title={id}
          onClick={onChoose}
        >
          {endpoint}
        </button>
      </th>
      <td>{showControls(stateWords(trace))}</td>
      <td>{formatMs(duration)}</td>
      <td>{rows.prompt + rows.resumed}</td>
      <td>{rows.cached}</td>
      <td>{rows.prefilled}</td>
      <td>{rows.generated}</td>
    </tr>
  );
}
