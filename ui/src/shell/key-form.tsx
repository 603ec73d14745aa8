/** Asks for the API key and exchanges it for a cookie that scripts cannot read. */

import { useState } from "react";
import { messageOf } from "../api/request.ts";
import { unlock } from "../state/session.ts";
import { FermataMark } from "./icon.tsx";

export function KeyForm() {
  const [key, setKey] = useState("");
  const [error, setError] = useState<string | null>(null);
  const send = async (): Promise<void> => {
    setError(null);
    try {
      await unlock(key.trim());
    } catch (cause) {
      setError(messageOf(cause));
    }
  };
  return (
    <main className="key-page">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim() !== "") void send();
        }}
      >
        <FermataMark />
        <h1>Fermata</h1>
        <p>This server asks for an API key.</p>
        <label>
          API key
          <input
            type="password"
            autoComplete="current-password"
            autoFocus
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {error !== null && <p role="alert">{error}</p>}
        <button type="submit" className="primary" disabled={key.trim() === ""}>
          Come in
        </button>
      </form>
    </main>
  );
}
