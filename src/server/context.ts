/** What every route is made with. Type-only. */

import type { ApiKeys } from "./http/api-keys.ts";
import type { OnceWarnings } from "./body/warnings.ts";
import type { ActiveRequests } from "./http/requests.ts";
import type { HistoryGaps } from "./http/history-gaps.ts";
import type { Metrics } from "./metrics.ts";
import type { ModelLease } from "../models/types.ts";
import type { Traces } from "./answer/traces.ts";
import type { LoadedModel, ServerConfig, ServerServices } from "./services.ts";

export interface RouteContext {
  services: ServerServices;
  config: ServerConfig;
  keys: ApiKeys;
  metrics: Metrics;
  active: ActiveRequests;
  warnings: OnceWarnings;
  gaps: HistoryGaps;
  traces: Traces;
  /** Keeps the model of these services in memory. Undefined: it stays there. */
  lease?: ModelLease<LoadedModel> | undefined;
  /** How long the request waited for this model to be in memory. Undefined: it always is. */
  loadMilliseconds?: number | undefined;
}
