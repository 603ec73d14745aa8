/** What the supervisor and its worker tell each other. Type-only; plain JSON. */

import type { ConnectionState } from "../../server/http/connection-reports.ts";
import type { BannerFacts } from "../banner.ts";
import type { ServeConfig } from "../options.ts";

export type ToWorker =
  /** Comes first, once. */
  | { type: "start"; config: ServeConfig }
  /** Comes with the socket, once the worker is ready. */
  | { type: "connection"; id: number }
  /** Drain and end. */
  | { type: "close" };

export type FromWorker =
  | { type: "ready"; facts: Omit<BannerFacts, "url"> }
  | { type: "connection"; id: number; state: ConnectionState }
  | { type: "connection-closed"; id: number };
