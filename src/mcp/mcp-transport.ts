/** The SDK's stdio transport with a process that is certainly gone a second after `close`. */

import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const killAfterMs = 1000;

export class McpTransport extends StdioClientTransport {
  #childPid: number | null = null;

  override async start(): Promise<void> {
    await super.start();
    this.#childPid = this.pid;
  }

  /** Closes the server's input, which ends a well-behaved one; kills it after a second. */
  override async close(): Promise<void> {
    if (this.pid === null) return super.close();
    const timer = setTimeout(() => kill(this.#childPid), killAfterMs);
    try {
      await super.close();
    } finally {
      clearTimeout(timer);
    }
  }
}

function kill(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Already gone.
  }
}
