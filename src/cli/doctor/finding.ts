/** What `fermata doctor` finds fault with. */

import { FermataError } from "../../errors.ts";

export interface Finding {
  /** error: serving would not work. warning: it would, worse than it could. */
  level: "error" | "warning";
  what: string;
  remedy: string;
}

export function findingOf(
  error: unknown,
  remedy: string,
  level: Finding["level"] = "error",
): Finding {
  if (!(error instanceof FermataError)) throw error;
  return { level, what: error.message.replace(/\.$/, ""), remedy };
}
