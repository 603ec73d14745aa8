// Node's own fetch with limits of moments in place of its five minutes, for code that must not keep to them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const dispatcher = Symbol.for("undici.globalDispatcher.1");
const globals = globalThis as unknown as Record<symbol, object>;
const limits = { headersTimeout: 100, bodyTimeout: 100 };

interface ImpatientFetch {
  /** Resolves when fetch has given up an answer without a head and one without a body, both asked for now. */
  hasGivenUp(): Promise<void>;
  restore(): Promise<void>;
}

export async function impatientFetch(): Promise<ImpatientFetch> {
  const server = createServer((request, response) => {
    if (request.url === "/body") response.flushHeaders();
    if (request.url === "/") response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The first fetch makes the dispatcher.
  await (await fetch(`${url}/`)).text();
  const usual = globals[dispatcher]!;
  const Agent = usual.constructor as new (options: object) => object;
  globals[dispatcher] = new Agent(limits);
  const givesUp = async (path: string): Promise<void> => {
    const isDone = await fetch(url + path).then(
      (response) =>
        response.text().then(
          () => true,
          () => false,
        ),
      () => false,
    );
    if (isDone) throw new Error(`fetch got an answer from ${path}`);
  };
  return {
    hasGivenUp: async () => void (await Promise.all([givesUp("/head"), givesUp("/body")])),
    async restore() {
      globals[dispatcher] = usual;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
