/** What a response is run with, and what is kept of it. Type-only. */

import type { HeldTurn, ToolCall } from "../../chat/types.ts";
import type { FermataError } from "../../errors.ts";
import type { OpenStore } from "../../store/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { TokenTimes } from "../answer/token-times.ts";
import type { ToldRound, DrawnTokens } from "../answer/written-round.ts";
import type { TimesWanted } from "../body/generation.ts";
import type { McpCallResult } from "./events/mcp.ts";
import type { HeldCalls } from "./calls/held.ts";
import type { EventLog } from "./events/log.ts";
import type { Item, McpListToolsItem, UnnumberedEvent, WireEvent } from "./types.ts";
import type { ResponseWriter } from "./events/writer.ts";

export interface ResponseParts {
  owner: string;
  writer: ResponseWriter;
  abort: AbortController;
  /** Null: nothing is stored. */
  store: OpenStore | null;
  input: readonly Item[];
  /** The client learns the id before the response ends. */
  tellsId: boolean;
  /** Such a failure is told by the stream's events, even if it comes before the first one. Default: none is. */
  isToldInStream?: (error: unknown) => boolean;
  /** Null: calls of the client's functions end the response. */
  held: HeldCalls | null;
  /** Another process began it: the store knows it, and its connection is gone. */
  revived?: RevivedParts;
  /** The client asked the response to wait, so a request with the outputs may resume it. */
  resumesByRequest: boolean;
  /** The body that made it, for another process to go on with; null: it ends with this one. */
  wire: unknown;
  /** Of the model. */
  fingerprint(): string;
  /** Null: what it writes is lost with this process. */
  drawn: DrawnTokens | null;
  log: EventLog;
  /** For llama-server's `timings`. Default: no event has them. */
  timing?: { times: TokenTimes; wanted: TimesWanted };
  lists: readonly McpListToolsItem[];
  /** Events of earlier responses; see `ResponseWriter.foreign`. */
  foreign: readonly UnnumberedEvent[];
  /** Approved calls; they run first. */
  approved: readonly ApprovedCall[];
  /** Called once, after the approved calls have run. */
  generate(sink: Sink<RunEvent>): Promise<void>;
  /** Called before the client is asked for approval, with the request in the store. */
  onAsked(request: Item): Promise<void>;
  /** Called before the last event is sent. @param transcript the items that the response adds to its conversation */
  onEnd(failure: FermataError | null, transcript: readonly Item[]): void;
}

export interface RevivedParts {
  /** What was told before. */
  told: readonly WireEvent[];
  /** That the model was writing. */
  round: ToldRound;
  /** Its model had not begun. */
  isOpening: boolean;
  /** Called when this process, too, leaves it to the next one. */
  onLeft(): Promise<void>;
}

/** What is kept of a round, so that another process goes on behind it. */
export interface KeptRound {
  /** Null: it is not known. */
  turn: HeldTurn | null;
  /** It was stored, its first round began, or its last one was held. */
  at: "created" | "begun" | "held";
  /** Of the model. */
  fingerprint: string;
}

export interface ApprovedCall {
  call: ToolCall;
  requestId: string;
  run(): Promise<McpCallResult>;
}
