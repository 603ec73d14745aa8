/** What a client asks of the output, and what the engine is given for it. Type-only. */

import type { JsonObject } from "./schema/types.ts";

interface JsonSchemaFormat {
  kind: "json_schema";
  schema: JsonObject | boolean;
  /** A keyword that no mask can hold is an error; else the answer is validated afterwards. */
  strict: boolean;
  /** The wire has no `strict` for it: the client cannot ask for less. */
  alwaysStrict?: boolean;
  field: string;
}

/** The whole answer has this form, unless it is a call. */
export type DocumentFormat =
  | { kind: "json_object" }
  | JsonSchemaFormat
  | { kind: "regex"; pattern: string; field: string }
  | { kind: "choice"; choices: readonly string[] }
  /** Lark in llguidance's dialect or GBNF; the text tells. */
  | { kind: "grammar"; text: string; field: string };

export interface Guidance {
  /** `required`: the first round calls a tool. `none`: the tools are in the prompt, and no round has a call. */
  toolChoice: "auto" | "none" | "required";
  /** Names of the tools that may be called; undefined: all. */
  allowed?: readonly string[] | undefined;
  /** More than one call in a round. */
  parallel: boolean;
  document?: DocumentFormat | undefined;
  /** Near the token limit, finish along the shortest valid path. */
  closeAtLimit: boolean;
}

export interface GuidedTool {
  name: string;
  parameters: JsonObject;
  strict?: boolean | undefined;
}

/** How reasoning begins and ends in this model's text. */
export interface ReasoningMarkers {
  open: string;
  close: string;
}

/** How a round's text begins. `no`: without reasoning. `split`: it may begin with reasoning. `open`: the prompt has opened it. */
export type RoundReasoning = "no" | "split" | "open";

/** A token with a spelling that text cannot produce. */
export interface ControlToken {
  id: number;
  text: string;
}
