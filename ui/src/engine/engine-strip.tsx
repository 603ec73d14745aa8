/** The engine, live: sequences, KV cells, speed, and the re-prefill ratio. */

import type { EngineState } from "../api/wire.ts";
import { FermataMark } from "../shell/icon.tsx";
import { shortcuts } from "../shell/shortcuts.ts";
import { engineState } from "../state/engine.ts";
import { useStore } from "../state/store.ts";

export function EngineStrip({ onInspect }: { onInspect(): void }) {
  const state = useStore(engineState);
  return (
    <footer className="engine-strip" role="group" aria-label="Engine">
      {state === null ? (
        <span className="muted">The engine is not heard from.</span>
      ) : (
        <Facts state={state} />
      )}
      <button
        type="button"
        className="quiet"
        title={`${shortcuts.inspector.what} (${shortcuts.inspector.keys})`}
        onClick={onInspect}
      >
        Inspector
      </button>
    </footer>
  );
}

function Facts({ state }: { state: EngineState }) {
  const { sequences, tokens_per_second: speed, re_prefill_ratio: ratio } = state;
  return (
    <>
      <dl className="facts">
        <Fact name="running" value={sequences.running} isActive={sequences.running > 0} />
        <Fact name="held" value={sequences.held} isActive={sequences.held > 0} isHold />
        <Fact name="waiting" value={sequences.waiting} isActive={sequences.waiting > 0} />
      </dl>
      <Cells state={state} />
      <dl className="facts">
        <Fact
          name="tokens/s"
          value={speed >= 100 ? Math.round(speed) : speed.toFixed(1)}
          isActive={speed > 0}
        />
        <Fact
          name="re-prefill"
          value={ratio.toFixed(2)}
          title="Tokens computed over tokens that were new; 1.00 when no request computed one twice"
        />
      </dl>
    </>
  );
}

interface FactProps {
  name: string;
  value: string | number;
  isActive?: boolean;
  isHold?: boolean;
  title?: string;
}

function Fact({ name, value, isActive = false, isHold = false, title }: FactProps) {
  return (
    <div data-active={isActive} data-hold={isHold} title={title}>
      <dt>
        {isHold && <FermataMark />}
        {name}
      </dt>
      <dd>{value}</dd>
    </div>
  );
}

function Cells({ state: { kv_cells: cells, kv_ram: ram, kv_disk: disk } }: { state: EngineState }) {
  const total = Math.max(1, cells.used + cells.retained + cells.free);
  const words = [
    `KV cells: ${count(cells.used)} used, ${count(cells.retained)} retained, ${count(cells.free)} free`,
    ...(ram.limit > 0 ? [`in memory: ${sequencesOf(ram)}`] : []),
    ...(disk.limit > 0 ? [`in files: ${sequencesOf(disk)}`] : []),
  ].join("; ");
  const shown = [
    `${count(cells.used)} used`,
    `${count(cells.retained)} retained`,
    ...(ram.sequences > 0 ? [`${ram.sequences} in memory`] : []),
    ...(disk.sequences > 0 ? [`${disk.sequences} in files`] : []),
  ];
  return (
    <div className="cells" role="img" aria-label={words} title={words}>
      <span className="cells-bar">
        <span className="used" style={{ inlineSize: `${(100 * cells.used) / total}%` }} />
        <span className="retained" style={{ inlineSize: `${(100 * cells.retained) / total}%` }} />
      </span>
      <span className="cells-words">{shown.join(" · ")}</span>
    </div>
  );
}

function count(value: number): string {
  return value.toLocaleString("en");
}

function sequencesOf({ sequences, used, limit }: EngineState["kv_ram"]): string {
  const [usedMiB, limitMiB] = [used, limit].map((bytes) => count(Math.round(bytes / 2 ** 20)));
  const word = sequences === 1 ? "sequence" : "sequences";
  return `${count(sequences)} ${word}, ${usedMiB} of ${limitMiB} MiB`;
}
