/** The port: whether it is free, and listening on it. */

import { createServer, type Server } from "node:net";
import type { FastifyInstance } from "fastify";
import { FermataError, invalidOption } from "../errors.ts";
import type { ServeConfig } from "./options/serve-options.ts";

/** Before minutes are spent on loading a model. @throws FermataError port_in_use | invalid_option */
export async function assertPortFree(port: number, host: string): Promise<void> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (cause) => reject(listenError(cause, port, host)));
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

/** Resolves to the URL to try. @throws FermataError port_in_use | invalid_option */
export async function listen(app: FastifyInstance, port: number, host: string): Promise<string> {
  try {
    await app.listen({ port, host, listenTextResolver: (address) => `listening at ${address}` });
  } catch (cause) {
    throw listenError(cause as NodeJS.ErrnoException, port, host);
  }
  return urlOf(app.server, port, host);
}

/** As `listen`, for a bare server. */
export async function listenBare(server: Server, port: number, host: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => reject(listenError(cause, port, host)));
    server.listen(port, host, resolve);
  });
  return urlOf(server, port, host);
}

function urlOf(server: Server, port: number, host: string): string {
  const address = server.address();
  const actualPort = typeof address === "object" && address !== null ? address.port : port;
  return localUrl({ host, port: actualPort });
}

/** Where a server with these options is reached from this machine. */
export function localUrl({ host, port }: Pick<ServeConfig, "host" | "port">): string {
  const reached = ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

function listenError(cause: NodeJS.ErrnoException, port: number, host: string): FermataError {
  if (cause.code === "EADDRINUSE") {
    const message = `Port ${port} on ${host} is in use. Stop the program that listens there, or choose another port with --port.`;
    return new FermataError("port_in_use", message, { param: "port", cause });
  }
  if (cause.code === "EACCES") {
    const message = `Port ${port} may not be used by this user. Choose one above 1023 with --port.`;
    return invalidOption(message, "port", cause);
  }
  return invalidOption(`Cannot listen on ${host}: ${cause.message}.`, "host", cause);
}
