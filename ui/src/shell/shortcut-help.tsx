import { Dialog } from "./dialog.tsx";
import { shortcuts, writingKeys } from "./shortcuts.ts";

export function ShortcutHelp({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl className="shortcut-list">
        {Object.values(shortcuts).map(({ keys, what }) => (
          <Row key={what} keys={keys} what={what} />
        ))}
      </dl>
      <h3>While writing</h3>
      <dl className="shortcut-list">
        {writingKeys.map(([keys, what]) => (
          <Row key={what} keys={keys} what={what} />
        ))}
      </dl>
    </Dialog>
  );
}

function Row({ keys, what }: { keys: string; what: string }) {
  return (
    <div>
      <dt>{what}</dt>
      <dd>
        <kbd>{keys}</kbd>
      </dd>
    </div>
  );
}
