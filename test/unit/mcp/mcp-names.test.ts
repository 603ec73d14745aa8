import { expect, test } from "vitest";
import { nameTools } from "../../../src/mcp/names.ts";

const servers = (tools: Record<string, string[]>) =>
  Object.entries(tools).map(([id, names]) => ({ id, tools: names.map((name) => ({ name })) }));
const exposed = (tools: Record<string, string[]>, prefixed = true) =>
  nameTools(servers(tools), prefixed).map((named) => named.exposed);

test("bare and prefixed", () => {
  expect(exposed({ fs: ["read_file", "list"] }, false)).toEqual(["read_file", "list"]);
  expect(exposed({ fs: ["read_file"], git: ["read_file"] })).toEqual([
    "fs_read_file",
    "git_read_file",
  ]);
});

test("illegal and long names are altered, always in the same way", () => {
  const long = "x".repeat(80);
  const names = exposed({ "my server": ["a.b", "ok", long] });
  expect(names).toEqual([
    expect.stringMatching(/^my_server_a_b_[0-9a-f]{8}$/),
    expect.stringMatching(/^my_server_ok_[0-9a-f]{8}$/),
    expect.stringMatching(/^my_server_x+_[0-9a-f]{8}$/),
  ]);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(exposed({ "my server": ["a.b", "ok", long] })).toEqual(names);
});

test("names that would collide are told apart, whatever the order", () => {
  const names = exposed({ a: ["b_c"], a_b: ["c"] });
  expect(new Set(names).size).toBe(2);
  expect(exposed({ a_b: ["c"], a: ["b_c"] })).toEqual(names.toReversed());
  expect(new Set(exposed({ s: ["a.b", "a-b", "a_b"] }, false)).size).toBe(3);
});

test("routing keeps the original name", () => {
  const [first] = nameTools(servers({ "x y": ["a.b"] }), true);
  expect(first).toMatchObject({ serverId: "x y", tool: { name: "a.b" } });
});
