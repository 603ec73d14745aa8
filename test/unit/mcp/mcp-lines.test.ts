import { expect, test, vi } from "vitest";
import { boundedFetch } from "../../../src/mcp/transport/bounded-fetch.ts";
import {
  BoundedLines,
  idOfOversized,
  type Line,
} from "../../../src/mcp/transport/bounded-lines.ts";

function linesOf(limit: number, chunks: string[]): Line[] {
  const lines = new BoundedLines(limit);
  return chunks.flatMap((chunk) => [...lines.push(Buffer.from(chunk))]);
}

test.each([1, 2, 3, 7, 1000])("lines in chunks of %i bytes", (size) => {
  const text = 'one\r\n\n{"zwölf":12}\nlast\nrest';
  const bytes = Buffer.from(text);
  const lines = new BoundedLines(100);
  const found: Line[] = [];
  for (let start = 0; start < bytes.length; start += size)
    found.push(...lines.push(bytes.subarray(start, start + size)));
  expect(found.map((line) => (line.kind === "line" ? line.text : line))).toEqual([
    "one",
    "",
    '{"zwölf":12}',
    "last",
  ]);
});

test("of a line that is too long only the ends are kept, and the next one is read", () => {
  const long = `{"id":7,${"x".repeat(5000)},"id":8}`;
  for (const chunks of [[`${long}\nnext\n`], [...long, "\n", "next\n"]]) {
    const [first, second] = linesOf(1000, chunks);
    expect(first).toMatchObject({ kind: "oversized", bytes: long.length });
    expect(first).toMatchObject({ head: long.slice(0, 512), tail: long.slice(-512) });
    expect(second).toEqual({ kind: "line", text: "next" });
  }
});

test.each<[head: string, tail: string, id: number | null]>([
  ['{"jsonrpc":"2.0","id":5,"result":{"content":[', '"}]}}', 5],
  ['{ "id": 5, "result": {', "}}", 5],
  ['{"result":{"content":[', '"}]},"jsonrpc":"2.0","id":12}', 12],
  ['{"result":{"content":[', '"}]},"id":12,"jsonrpc":"2.0"}', 12],
  ['{"result":{"id":5,"content":[', '"}]}}', null],
  ['{"result":{"text":"{\\"id\\":5,', ',\\"id\\":5}"}}', null],
  ["noise", "noise", null],
])("the id of %j … %j is %j", (head, tail, id) => {
  expect(idOfOversized({ head, tail })).toBe(id);
});

const post = { method: "POST", body: '{"jsonrpc":"2.0","id":3,"method":"tools/call"}' };

function fetchOf(body: string | ReadableStream, type: string, limit: number) {
  const response = (): Response => new Response(body, { headers: { "content-type": type } });
  return boundedFetch(async () => response(), limit)("http://x/", post);
}

test("a body that is too large becomes the call's error", async () => {
  const small = await fetchOf('{"id":3}', "application/json", 100);
  expect(await small.json()).toEqual({ id: 3 });
  const large = await fetchOf(
    `{"id":3,"result":"${"x".repeat(3_000_000)}"}`,
    "application/json",
    2 ** 20,
  );
  expect(await large.json()).toMatchObject({
    id: 3,
    error: { message: expect.stringContaining("larger than the limit of 1 MiB") },
  });
});

test("so does an event that is too large, and the stream goes on", async () => {
  const events = `data: {"method":"n"}\n\ndata: {"id":3,"result":"${"x".repeat(2000)}"}\n\n: end\n`;
  const text = await (await fetchOf(events, "text/event-stream", 1000)).text();
  const [first, second, , , comment] = text.split("\n");
  expect([first, comment]).toEqual(['data: {"method":"n"}', ": end"]);
  expect(text.split("\n")[2]).toMatch(/^data: \{"jsonrpc":"2.0","id":3,"error"/);
  expect(second).toBe("");
});

test("a stream that ends without the answer becomes the call's error, unless it can be resumed", async () => {
  const lost = /"id":3,"error":\{"code":-32000,"message":"the server closed the connection before/;
  const cut = await fetchOf('data: {"method":"n"}\n\n', "text/event-stream", 1000);
  expect(await cut.text()).toMatch(lost);
  const answered = await fetchOf(
    'data: {"result":{},"jsonrpc":"2.0","id":3}\n\n',
    "text/event-stream",
    1000,
  );
  expect(await answered.text()).not.toMatch(lost);
  const resumable = await fetchOf('id: 9\ndata: {"method":"n"}\n\n', "text/event-stream", 1000);
  expect(await resumable.text()).not.toMatch(lost);
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('data: {"method":"n"}\n\n'));
    },
    pull(controller) {
      controller.error(new TypeError("terminated"));
    },
  });
  expect(await (await fetchOf(broken, "text/event-stream", 1000)).text()).toMatch(lost);
});

const notice = { method: "POST", body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' };
const tokens = { method: "POST", body: new URLSearchParams({ grant_type: "refresh_token" }) };
const client = { method: "POST", body: '{"client_name":"Fermata"}' };

test.each(["head", "body"])("what has no %s within half a minute is over", async (missing) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const late = async (_url: unknown, { signal }: RequestInit = {}): Promise<Response> => {
      const given = new Promise<never>((_, reject) =>
        signal!.addEventListener("abort", () => reject(signal!.reason)),
      );
      if (missing === "head") return await given;
      return new Response(new ReadableStream({ pull: () => given }));
    };
    const bounded = boundedFetch(late, 1000);
    const text = async (init: RequestInit): Promise<string> =>
      await (await bounded("http://login.test/x", init)).text();
    const wanted = Promise.allSettled([{}, tokens, client, { method: "DELETE" }].map(text));
    const told = text(notice);
    await vi.advanceTimersByTimeAsync(30_000);
    for (const one of await wanted)
      expect(one).toMatchObject({
        status: "rejected",
        reason: { message: "login.test did not answer within 30 seconds" },
      });
    // A notice is the server's to take or to leave.
    expect(await told).not.toContain("error");
  } finally {
    vi.useRealTimers();
  }
});
