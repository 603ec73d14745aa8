import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface FaultRow {
  fault: string;
  promise: string;
  /** In every run of `npm test`. */
  injected: number;
  lost: string;
}

const docs = join(import.meta.dirname, "../../docs/reliability.md");
const [, section = ""] = readFileSync(docs, "utf8").split("\n## Faults\n");

/** Of docs/reliability.md. */
export const faultTable: FaultRow[] = section
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map((line) => {
    const [, fault = "", promise = "", injected = "", lost = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    return { fault, promise, injected: Number.parseInt(injected, 10), lost };
  });
