// The link that a server with a key of its own prints.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../../../ui/src/api/request.ts";
import { noteFailure, session, unlockByLink } from "../../../ui/src/state/session.ts";

let sent: { url: string; key: string | null }[];
let isForgotten: boolean;
let status: number;

function open(hash: string): Promise<void> {
  return unlockByLink(hash, () => (isForgotten = true));
}

beforeEach(() => {
  sent = [];
  isForgotten = false;
  status = 200;
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    sent.push({ url, key: new Headers(init.headers).get("authorization") });
    return Response.json(status === 200 ? {} : { error: { code: "unauthorized" } }, { status });
  });
});
afterEach(() => vi.unstubAllGlobals());

test("its key opens a session and leaves the address", async () => {
  await open("#key=abc-1_2");
  expect(sent).toEqual([{ url: "/api/session", key: "Bearer abc-1_2" }]);
  expect(isForgotten).toBe(true);
  expect(session.get()).toBe("open");
});

test("an unknown key leads to the form", async () => {
  status = 401;
  await open("#key=old");
  expect(isForgotten).toBe(true);
  expect(session.get()).toBe("locked");
});

test("another link is left alone", async () => {
  await open("#section");
  expect(sent).toEqual([]);
  expect(isForgotten).toBe(false);
});

test("a refusal of what was sent before the key was accepted does not ask for the key again", async () => {
  const before = performance.now();
  await open("#key=abc-1_2");
  noteFailure(new ApiError(401, "unauthorized", "No key.", before - 1));
  expect(session.get()).toBe("open");
  noteFailure(new ApiError(401, "unauthorized", "No key.", performance.now()));
  expect(session.get()).toBe("locked");
});
