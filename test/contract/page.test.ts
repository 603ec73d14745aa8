// The web page over HTTP; what is in it is test/browser's.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PageFiles, readPageFiles } from "../../src/server/about/page.ts";
import { createWorld } from "./fake-services.ts";

const script = "console.log('page');";
let folder: string;
let page: PageFiles;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-page-"));
  await mkdir(join(folder, "assets"));
  await writeFile(join(folder, "index.html"), "<!doctype html><title>Fermata</title>");
  await writeFile(join(folder, "assets", "index-abc.js"), script);
  await writeFile(join(folder, "assets", "index-abc.js.br"), brotliCompressSync(script));
  await writeFile(join(folder, "assets", "mark-abc.svg"), "<svg/>");
  await writeFile(join(folder, "assets", "secret.txt"), "not of the page");
  page = readPageFiles(folder)!;
});
afterAll(() => rm(folder, { recursive: true }));

const get = (url: string, headers: Record<string, string> = {}, config = {}) =>
  createWorld({ config: { page, ...config } }).app.inject({ url, headers });

test.each(["/", "/c/conv_1"])("%s is the page", async (url) => {
  const { statusCode, headers, body } = await get(url);
  expect(statusCode).toBe(200);
  expect(body).toContain("<title>Fermata</title>");
  expect(headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(headers["cache-control"]).toBe("no-cache");
});

test("the policy allows nothing inline and nothing from elsewhere", async () => {
  const { headers } = await get("/");
  const policy = String(headers["content-security-policy"]).split("; ");
  expect(policy[0]).toBe("default-src 'self'");
  expect(policy).toContain("require-trusted-types-for 'script'");
  // Whatever is named besides is narrower than the default.
  for (const directive of policy.slice(1)) expect(directive).toMatch(/ '(?:none|script)'$/);
  expect(headers["x-content-type-options"]).toBe("nosniff");
  expect(headers["referrer-policy"]).toBe("no-referrer");
});

test("assets may be kept forever and come compressed to who takes it", async () => {
  const plain = await get("/assets/index-abc.js");
  expect(plain.body).toBe(script);
  expect(plain.headers["content-type"]).toBe("text/javascript; charset=utf-8");
  expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  expect(plain.headers["vary"]).toBe("accept-encoding");
  const brotli = await get("/assets/index-abc.js", { "accept-encoding": "gzip, br" });
  expect(brotli.headers["content-encoding"]).toBe("br");
  expect(String(brotliDecompressSync(brotli.rawPayload))).toBe(script);
  const refused = await get("/assets/index-abc.js", { "accept-encoding": "gzip, br;q=0" });
  expect(refused.headers["content-encoding"]).toBe(undefined);
  const small = await get("/assets/mark-abc.svg", { "accept-encoding": "br" });
  expect(small.headers["content-encoding"]).toBe(undefined);
  expect(small.headers["content-type"]).toBe("image/svg+xml");
});

test("what has not changed is not sent again", async () => {
  const { headers } = await get("/");
  const again = await get("/", { "if-none-match": String(headers.etag) });
  expect([again.statusCode, again.body]).toEqual([304, ""]);
});

test.each(["gone.js", "secret.txt", "..%2fpackage.json", "index-abc.js.br"])(
  "/assets/%s is a 404 in the API's shape",
  async (name) => {
    const response = await get(`/assets/${name}`);
    expect(response.statusCode).toBe(404);
    expect(response.json().error.code).toBe("not_found");
  },
);

test("the page needs no key, the API does", async () => {
  const config = { apiKeys: ["secret"] };
  expect((await get("/", {}, config)).statusCode).toBe(200);
  expect((await get("/assets/index-abc.js", {}, config)).statusCode).toBe(200);
  expect((await get("/v1/models", {}, config)).statusCode).toBe(401);
});

test("other methods are refused, and without the page one line says that the server is there", async () => {
  const { app } = createWorld({ config: { page } });
  const posted = await app.inject({ method: "POST", url: "/" });
  expect([posted.statusCode, posted.headers.allow]).toEqual([405, "GET, HEAD"]);
  expect((await app.inject({ method: "HEAD", url: "/" })).statusCode).toBe(200);
  const bare = createWorld({ config: { apiKeys: ["secret"] } }).app;
  for (const method of ["GET", "HEAD"] as const) {
    const { statusCode, body } = await bare.inject({ method, url: "/" });
    expect([statusCode, body]).toEqual([200, method === "GET" ? "Fermata is running.\n" : ""]);
  }
  expect(readPageFiles(join(folder, "assets"))).toBe(null);
});
