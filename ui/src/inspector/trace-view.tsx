/** One answer's sequences and calls as bars over time, and the same as a table. */

import type { Trace } from "../api/wire.ts";
import { showControls } from "../markdown/safe-text.ts";
import { formatMs } from "../turn/timeline.ts";
import { type Bar, type Lane, lanesOf } from "./trace.ts";

export function TraceView({ trace }: { trace: Trace }) {
  const { id, model, rows, dropped } = trace;
  const endMs = Math.max(trace.duration_ms, 0.001);
  const lanes = lanesOf(trace, endMs);
  return (
    <figure className="timeline" aria-label={`Timeline of ${id}`}>
      <figcaption>
        <p className="inspector-id">
          <code>{id}</code> {showControls(model)}
        </p>
        <p>
          {rows.prompt} prompt tokens, {rows.cached} of them cached; {rows.resumed} tokens of
          results; {rows.prefilled} rows computed,{" "}
          {rows.recomputed === 0 ? "none twice" : `${rows.recomputed} of them again`};{" "}
          {rows.generated} tokens written.
        </p>
      </figcaption>
      <div className="tracks" aria-hidden="true">
        {lanes.map((lane, index) => (
          <Track key={index} lane={lane} endMs={endMs} />
        ))}
      </div>
      <table className="inspector-spans">
        <caption className="visually-hidden">Phases and calls of this answer</caption>
        <thead>
          <tr>
            <th scope="col">Phase</th>
            <th scope="col">At</th>
            <th scope="col">Time</th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          {lanes
            .flatMap(({ name, bars }) => bars.map((bar) => ({ lane: name, bar })))
            .toSorted((one, other) => one.bar.startMs - other.bar.startMs)
            .map(({ lane, bar }, index) => (
              <tr key={index} data-phase={bar.phase}>
                <th scope="row">{phaseName(bar)}</th>
                <td>{formatMs(bar.startMs)}</td>
                <td>{formatMs(bar.endMs - bar.startMs)}</td>
                <td>{showControls(whatOf(lane, bar, lanes.length))}</td>
              </tr>
            ))}
        </tbody>
      </table>
      {dropped > 0 && <p className="muted">{dropped} more phases and calls were not kept.</p>}
    </figure>
  );
}

function Track({ lane: { bars }, endMs }: { lane: Lane; endMs: number }) {
  return (
    <div className="track">
      {bars.map((bar, index) => (
        <span
          key={index}
          data-phase={bar.phase}
          title={[phaseName(bar), formatMs(bar.endMs - bar.startMs), bar.words]
            .filter((part) => part !== "")
            .join(", ")}
          style={{
            insetInlineStart: `${(100 * bar.startMs) / endMs}%`,
            inlineSize: `${(100 * (bar.endMs - bar.startMs)) / endMs}%`,
          }}
        />
      ))}
    </div>
  );
}

function phaseName({ phase, name }: Bar): string {
  return phase === "tool" ? `tool ${showControls(name)}` : name;
}

/** Sub-agents and several answers have sequences of their own, which are told apart by their names. */
function whatOf(lane: string, { phase, words }: Bar, laneCount: number): string {
  if (phase === "tool" || laneCount === 1 || lane === "sequence") return words;
  return words === "" ? lane : `${lane}: ${words}`;
}
