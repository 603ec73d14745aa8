/**
 * The supervisor's copies of the clients' sockets. A worker reads and writes them by itself; the copies
 * keep them open when it dies, so that what it left unfinished can be ended in a way clients understand.
 */

import type { Socket } from "node:net";
import { errorBody } from "../../server/http/error-replies.ts";
import { rawResponse } from "../../server/http/broken-requests.ts";
import {
  type ConnectionState,
  crashError,
  type InFlight,
} from "../../server/http/connection-reports.ts";

/** For a client to take the last words and to close. */
const farewellMs = 1000;
/** For what the client sent before, and nobody read, to be seen. */
const unreadMs = 100;

interface Connection {
  socket: Socket;
  state: ConnectionState;
}

export class Connections {
  readonly #open = new Map<number, Connection>();
  #lastId = 0;

  add(socket: Socket): number {
    const id = ++this.#lastId;
    socket.on("error", () => {});
    this.#open.set(id, { socket, state: { kind: "idle", answered: null } });
    return id;
  }

  update(id: number, state: ConnectionState): void {
    const connection = this.#open.get(id);
    if (connection !== undefined) connection.state = state;
  }

  /** The worker closed its side. */
  remove(id: number): void {
    this.#open.get(id)?.socket.destroy();
    this.#open.delete(id);
  }

  /** The worker is gone. @returns what it was working on */
  endAll(): InFlight[] {
    const requests: InFlight[] = [];
    for (const { socket, state } of this.#open.values()) {
      if (state.kind !== "idle") requests.push(state.request);
      if (state.kind === "waiting" || state.kind === "streaming") sayLast(socket, state.lastWords);
      else if (state.kind === "idle") endIdle(socket);
      else socket.destroy();
    }
    this.#open.clear();
    return requests;
  }
}

/** The worker may have left a request unread; then there was none that could be to blame. */
function endIdle(socket: Socket): void {
  const close = setTimeout(() => socket.destroy(), unreadMs);
  socket.once("data", () => {
    clearTimeout(close);
    refuse(socket, 1);
  });
  socket.resume();
}

/** For a connection that comes while there is no worker. */
export function refuse(socket: Socket, retryAfterSeconds: number): void {
  socket.on("error", () => {});
  const error = crashError();
  const headers = [`retry-after: ${retryAfterSeconds}`];
  sayLast(socket, rawResponse(error.status, errorBody(error), headers));
}

/** What the client still sends is read away: closing with unread bytes would take the words back. */
function sayLast(socket: Socket, words: string): void {
  socket.resume();
  socket.end(words);
  setTimeout(() => socket.destroy(), farewellMs).unref();
}
