/** What a failure of the database means: try again, or tell it. */

import { FermataError } from "../../errors.ts";

/** Of the network and of Node. */
const lostCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  // The folder of the socket, while the server starts.
  "ENOENT",
  // The server shuts down, crashed, starts, has too many clients, is a standby until it is promoted.
  "57P01",
  "57P02",
  "57P03",
  "53300",
  "25006",
]);

/** `pg` has no codes for them. */
const lostTexts =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/;

/** The connection is gone, or none can be had: the same may succeed later. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === "string" && (lostCodes.has(code) || code.startsWith("08"))) return true;
  return typeof message === "string" && lostTexts.test(message);
}

/** Another transaction was faster: the same succeeds when it sees what that one did. Serialization, deadlock, unique, foreign key. */
export function isConflict(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "40001" || code === "40P01" || code === "23505" || code === "23503";
}

export function storeUnavailable(cause: unknown): FermataError {
  const message = "The store cannot be reached at the moment. Try again later.";
  return new FermataError("store_unavailable", message, { cause });
}
