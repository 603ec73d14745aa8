/** What is sent and what a broken connection is, as with `fetch`. */

import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { patientFetch } from "../../src/patient-fetch.ts";

let close = async (): Promise<void> => {};
afterEach(() => close());

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("it names itself and takes what it can read, unless the caller says otherwise", async () => {
  const seen: IncomingHttpHeaders[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers);
    response.end();
  });
  await patientFetch(url);
  await patientFetch(url, { headers: { Accept: "text/plain", "User-Agent": "mine" } });
  expect(seen).toMatchObject([
    { "user-agent": "fermata", accept: "*/*", "accept-encoding": "identity" },
    { "user-agent": "mine", accept: "text/plain", "accept-encoding": "identity" },
  ]);
});

test("a connection that breaks within a body is a TypeError", async () => {
  const url = await serve((_request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half", () => response.destroy());
  });
  const { body } = await patientFetch(url);
  const reader = body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("half");
  const error = await reader.read().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: "terminated", cause: { code: "ECONNRESET" } });
});

test("a body that the caller gives up fails with the caller's reason, and one that is not wanted ends its connection", async () => {
  const closed: Promise<void>[] = [];
  const url = await serve((_request, response) => {
    closed.push(new Promise((resolve) => response.once("close", resolve)));
    response.writeHead(200, { "content-length": "100" });
    response.write("half");
  });
  const abort = new AbortController();
  const reason = new Error("enough");
  const text = (await patientFetch(url, { signal: abort.signal })).text();
  abort.abort(reason);
  await expect(text).rejects.toBe(reason);
  const reader = (await patientFetch(url)).body!.getReader();
  await reader.read();
  await reader.cancel();
  expect(await Promise.all(closed)).toHaveLength(2);
});
