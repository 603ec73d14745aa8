/** What runs while a chat completion pauses, for clients that ask for it: never arguments or results. */

import type { ToolEvent, ToolOutcome } from "../../tools/types.ts";
import type { RunEvent } from "../../tools/types.ts";

export interface ToolStatus {
  call_id: string;
  name: string;
  server: string;
  /** `approval`: a person is asked. */
  state: "approval" | "running" | "done" | "failed" | "denied";
  /** The sub-agent that made the call. */
  agent?: string;
  message?: string;
  progress?: number;
  total?: number;
  milliseconds?: number;
}

const stateOfOutcome: Record<ToolOutcome, ToolStatus["state"]> = {
  ok: "done",
  error: "failed",
  timeout: "failed",
  cancelled: "failed",
  denied: "denied",
};
const stateOfApproval = { asked: "approval", approved: "running", denied: "denied" } as const;

export function isToolEvent(event: RunEvent): event is ToolEvent {
  return event.type.startsWith("tool-");
}

/** @returns null: it says nothing of a tool's state */
export function toolStatus(event: ToolEvent, agent?: string): ToolStatus | null {
  const { call, server } = event;
  const status = {
    call_id: call.id,
    name: call.name,
    server,
    ...(agent === undefined ? {} : { agent }),
  };
  switch (event.type) {
    case "tool-start":
      return { ...status, state: "running" };
    case "tool-approval":
      return { ...status, state: stateOfApproval[event.state] };
    case "tool-end": {
      const milliseconds = Math.round(event.milliseconds);
      return { ...status, state: stateOfOutcome[event.outcome], milliseconds };
    }
    case "tool-report": {
      const { report } = event;
      if (report.type === "agent")
        return isToolEvent(report.event) ? toolStatus(report.event, report.agent) : null;
      if (report.type === "output") return null;
      const { type: _type, ...progress } = report;
      return { ...status, state: "running", ...(progress as Partial<ToolStatus>) };
    }
  }
}
