/**
 * Tells systemd how the service is, where it asks for that (NOTIFY_SOCKET). Node has no datagram sockets of this
 * kind, so `systemd-notify` sends: the unit needs `NotifyAccess=all`.
 */

import { execFile } from "node:child_process";

type State = "READY=1" | "STOPPING=1" | "WATCHDOG=1";

export class ServiceManager {
  readonly #isThere: boolean;
  readonly #watchdogMs: number | null;
  #timer: NodeJS.Timeout | undefined;

  constructor({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog }: NodeJS.ProcessEnv) {
    this.#isThere = socket !== undefined && socket !== "";
    this.#watchdogMs = Number(watchdog) > 0 ? Number(watchdog) / 1000 : null;
  }

  /** Requests are taken. From now on the watchdog hears of this process. */
  ready(): void {
    this.#tell("READY=1");
    if (this.#watchdogMs === null) return;
    // Twice as often as it must.
    this.#timer = setInterval(() => this.#tell("WATCHDOG=1"), this.#watchdogMs / 2);
    this.#timer.unref();
  }

  /** Answers may end yet, which takes its time; the watchdog goes on. */
  stopping(): void {
    this.#tell("STOPPING=1");
  }

  /** A machine without the program has no systemd that waits. */
  #tell(state: State): void {
    if (!this.#isThere) return;
    execFile("systemd-notify", [`--pid=${process.pid}`, state], () => {});
  }
}
