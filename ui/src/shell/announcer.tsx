import { announcements } from "../state/announcer.ts";
import { useStore } from "../state/store.ts";

export function Announcer() {
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {useStore(announcements).map(({ key, text }) => (
        <p key={key}>{text}</p>
      ))}
    </div>
  );
}
