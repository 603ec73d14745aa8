import { expect, test, vi } from "vitest";
import { SealedTokens } from "../../../src/server/http/sealed-tokens.ts";

const tokens = new SealedTokens(Buffer.alloc(32, 1));
const claims = {
  kind: "session" as const,
  owner: "ab".repeat(32),
  expiresAt: Math.floor(Date.now() / 1000) + 60,
};

test("a token opens for its kind, until it expires", () => {
  const token = tokens.seal(claims);
  expect(tokens.open(token, "session")).toEqual(claims);
  expect(tokens.open(token, "stream")).toBeNull();
  expect(Buffer.from(token, "base64url").includes(claims.owner)).toBe(false);
  vi.useFakeTimers({ toFake: ["Date"], now: claims.expiresAt * 1000 });
  expect(tokens.open(token, "session")).toBeNull();
  vi.useRealTimers();
});

test("no changed, cut or foreign token opens", () => {
  const bytes = Buffer.from(tokens.seal(claims), "base64url");
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes);
    changed[index]! ^= 1;
    expect(tokens.open(changed.toString("base64url"), "session")).toBeNull();
    expect(tokens.open(bytes.subarray(0, index).toString("base64url"), "session")).toBeNull();
  }
  const other = new SealedTokens(Buffer.alloc(32, 2));
  expect(other.open(bytes.toString("base64url"), "session")).toBeNull();
});
