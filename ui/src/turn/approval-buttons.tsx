/** Buttons to approve or deny a call. */

import { useState } from "react";
import { messageOf } from "../api/request.ts";
import { showControls } from "../markdown/safe-text.ts";
import { decide } from "../state/actions.ts";
import type { Call } from "./turn.ts";

export function ApprovalButtons({ call }: { call: Call }) {
  const [sent, setSent] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const choose = async (decision: "approve" | "deny"): Promise<void> => {
    setSent(true);
    setError(null);
    try {
      await decide(call, { decision });
    } catch (cause) {
      setSent(false);
      setError(messageOf(cause));
    }
  };
  const name = showControls(call.tool_name);
  const { server } = call.tool_call_details;
  return (
    <div className="approval" role="group" aria-label={`Approval of ${name}`}>
      <p>
        <strong>{name}</strong>
        {server !== undefined && <> of {showControls(server)}</>} runs only if you allow it.
      </p>
      {call.may_have_run && (
        <p>The server was restarted while this call ran: it may have taken effect.</p>
      )}
      <div className="buttons">
        <button
          type="button"
          className="primary"
          data-approve={call.call_id}
          disabled={sent}
          onClick={() => void choose("approve")}
        >
          Approve
        </button>
        <button
          type="button"
          data-deny={call.call_id}
          disabled={sent}
          onClick={() => void choose("deny")}
        >
          Deny
        </button>
      </div>
      {error !== null && <p role="alert">{error}</p>}
    </div>
  );
}
