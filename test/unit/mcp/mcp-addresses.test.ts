/** A URL that a request names must not lead into the network of the server. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type AddressRules,
  checkUrl,
  guardedFetch,
  isPublicAddress,
  publicOnly,
} from "../../../src/mcp/transport/guarded-fetch.ts";

test.each([
  "0.0.0.0",
  "10.1.2.3",
  "100.64.0.1",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.170",
  "192.168.1.1",
  "198.18.0.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:8.8.8.8",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "2001::1",
  "2001:db8::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "ff02::1",
  "localhost",
  "",
])("%s is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  "8.8.8.8",
  "172.32.0.1",
  "100.128.0.1",
  "192.169.0.1",
  "2606:4700::1111",
  "2a00:1450::8",
])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  "http://example.com/mcp",
  "https://127.0.0.1/mcp",
  "https://[::1]/mcp",
  "https://[::ffff:10.0.0.1]/mcp",
  "https://0x7f000001/",
  "https://2130706433/",
  "https://127.1/",
  "https://0177.0.0.1/",
  "https://user:secret@example.com/",
  "file:///etc/passwd",
  "gopher://example.com/",
  "no url",
])("%s is refused before anything is sent", (url) => {
  expect(() => checkUrl(url, publicOnly)).toThrow(
    expect.objectContaining({ code: "invalid_value", param: "server_url" }),
  );
});

describe("names", () => {
  let port = 0;
  let reached: string[] = [];
  const server = createServer((request, response) => {
    reached.push(`${request.method} ${request.url} ${request.headers["x-key"] ?? ""}`);
    if (request.url === "/away") response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
    else response.writeHead(200, { "content-type": "text/plain" }).end("hello");
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => server.close());

  /** DNS as a test wants it; the loopback counts as public where a connection is to succeed. */
  function rules(addresses: string[][], allowed: string[] = []): AddressRules {
    reached = [];
    return {
      allowHttp: true,
      isAllowed: (address) => allowed.includes(address) || isPublicAddress(address),
      resolve: async () => (addresses.shift() ?? []).map((address) => ({ address, family: 4 })),
    };
  }

  test("one that leads to a private address is refused", async () => {
    const fetching = guardedFetch(rules([["127.0.0.1"]]))(`http://rebind.test:${port}/`);
    await expect(fetching).rejects.toMatchObject({ code: "invalid_value" });
    expect(reached).toEqual([]);
  });

  test("one bad address among good ones spoils the name", async () => {
    const fetching = guardedFetch(rules([["8.8.8.8", "10.0.0.1"]]))(`http://mixed.test:${port}/`);
    await expect(fetching).rejects.toMatchObject({ code: "invalid_value" });
  });

  test("what was public once and is private at the next connection is refused then", async () => {
    const turn = rules([["127.0.0.1"], ["169.254.169.254"]], ["127.0.0.1"]);
    const fetching = guardedFetch(turn);
    const first = await fetching(`http://rebind.test:${port}/`, { headers: { "x-key": "k" } });
    expect(await first.text()).toBe("hello");
    await expect(fetching(`http://rebind.test:${port}/`)).rejects.toMatchObject({
      code: "invalid_value",
    });
    expect(reached).toEqual(["GET / k"]);
  });

  test("a redirect is an answer, not an order", async () => {
    const fetching = guardedFetch(rules([["127.0.0.1"]], ["127.0.0.1"]));
    const response = await fetching(`http://away.test:${port}/away`);
    expect([response.status, response.headers.get("location")]).toEqual([
      302,
      "http://127.0.0.1:1/",
    ]);
    expect(reached).toEqual(["GET /away "]);
  });
});
