/** An error of the protocol, to be thrown in a handler. */

import { type ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";

/** The SDK puts the code before the message, sends both, and its client puts the code before them again. */
export function protocolError(code: ErrorCode | number, message: string): McpError {
  const error = new McpError(code, message);
  error.message = message;
  return error;
}
