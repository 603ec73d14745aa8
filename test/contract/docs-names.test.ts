/** Options, paths, metrics and figures that README and the guides name are there. */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { commands } from "../../src/cli/commands/commands.ts";
import { commandHelp } from "../../src/cli/run.ts";
import { serveOptions } from "../../src/cli/options/serve-options.ts";
import type { OpenApiDocument } from "../../src/server/http/openapi.ts";
import { createResponsesWorld } from "./responses-world.ts";

const root = join(import.meta.dirname, "../..");
const guides = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const names = ["README.md", "examples/README.md", ...guides.map((name) => `docs/${name}`)];
const texts = names.map((name) => [name, readFileSync(join(root, name), "utf8")] as const);

/** Of other programs: llama-server, clients, the build, the benchmark, vitest, V8, Docker. */
const foreignOptions = new Set([
  "--context-shift",
  "--metrics",
  "--no-slots",
  "--sleep-idle-seconds",
  "--spec-type",
  "--model-draft",
  "--auth-type",
  "--system-prompt",
  "--tools",
  "--backend",
  "--data",
  "--docs",
  "--heap-growing-percent",
  "--help",
  "--part",
  "--project",
  "--remote",
  "--rounds",
  "--fetch-tools",
  "--gpus",
  "--skip-git-repo-check",
  "--oss",
  "--local-provider",
  "--update",
  "--again",
]);
/** llama-server's. */
const foreignPaths = new Set(["/v1/stream"]);

const namedFiles =
  /`((?:(?:src|native|test|scripts|ui|packaging|examples)\/[\w./-]+)|[\w./-]+\.(?:tsx?|mjs|cpp|h|py|cmake))`/gu;
/** Of llama.cpp and Node, those that a reader makes, and what the build makes. */
const foreignFiles = new Set(["llama.h", "napi.h", "ask.mjs", "try.mjs", "ui/dist/"]);

const world = await createResponsesWorld();
afterAll(() => world.close());

describe.each(texts)("%s", (_name, text) => {
  test("names options that there are", () => {
    const help = commands.map(commandHelp).join("\n").replaceAll("--[no-]", "--");
    const known = new Set(help.match(/--[a-z][a-z-]+/gu));
    const named = text.match(/(?<=^|[\s`(])--[a-z][a-z-]*[a-z]/gmu) ?? [];
    const unknown = named.filter(
      (option) => !foreignOptions.has(option) && !known.has(option.replace(/^--no-/u, "--")),
    );
    expect(unknown).toEqual([]);
  });

  test("names paths that there are", async () => {
    const { paths } = (await world.app.inject({ url: "/openapi.json" })).json<OpenApiDocument>();
    // Each is there with `/v1` and without.
    const known = new Set(
      Object.keys(paths)
        .map((path) => path.replace(/\{\w+\}|:\w+/gu, "{}"))
        .flatMap((path) => [path, `/v1${path}`]),
    );
    const named = text.match(/(?<=[\s`"(]|:\d{4})\/(?:v1|api)\/[\w/{}…-]*[\w}…]/gmu) ?? [];
    const unknown = named
      .map((path) => path.replace(/\{\w+\}|\w+_…/gu, "{}"))
      .filter((path) => !known.has(path) && !foreignPaths.has(path));
    expect(unknown).toEqual([]);
  });
});

test("metrics that the guides name are told", async () => {
  const told = (await world.app.inject({ url: "/metrics" })).body;
  for (const [name, text] of texts) {
    for (const metric of new Set(text.match(/\bfermata_[a-z_]+[a-z]/gu)))
      expect(told, `${name}: ${metric}`).toContain(metric);
  }
});

test("README has the figures of docs/templates.md", () => {
  const text = new Map(texts);
  const table = text.get("docs/templates.md") ?? "";
  const [, equal] = /^(\d+) render to llama\.cpp's own text/mu.exec(table)!;
  const readme = text.get("README.md");
  expect(readme).toContain(`[${equal} of llama.cpp's 70](docs/templates.md)`);
  const generic = table.match(/it has no section for tools: .*a generic prompt/gu)!;
  expect(readme).toContain(`and ${generic.length} more get a section for tools`);
});

test("ARCHITECTURE.md knows how long its reading path is", () => {
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const [path] = /## Reading path[^#]*/u.exec(text)!;
  const rows = [...path.matchAll(/^\| (`.*?) \|/gmu)];
  const files = rows.flatMap(([, cell]) => {
    const names = [...cell!.matchAll(/`([^`]+)`/gu)].map(([, name]) => name!);
    const folder = join(root, dirname(names[0]!));
    return names.flatMap((name) => {
      const pattern = new RegExp(`^${basename(name).replace("*", ".*")}$`, "u");
      return readdirSync(folder)
        .filter((file) => pattern.test(file))
        .map((file) => join(folder, file));
    });
  });
  const lines = [...new Set(files)]
    .map((file) => readFileSync(file, "utf8").split("\n").length)
    .reduce((sum, count) => sum + count);
  const [, told] = /About ([\d,]+) lines explain the engine/u.exec(path)!;
  expect(Math.abs(Number(told!.replace(",", "")) / lines - 1)).toBeLessThan(0.15);
});

test("files that README, ARCHITECTURE, CONTRIBUTING, SECURITY and the guides name are there", () => {
  const others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(
    (name) => [name, readFileSync(join(root, name), "utf8")] as const,
  );
  const folders = ["src", "native", "test", "scripts", "ui", "packaging", "examples", "docs"];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
      (path) => `/${folder}/${path}`,
    ),
  );
  // Many are named by the end of their path.
  const isThere = (path: string): boolean =>
    existsSync(join(root, path)) || files.some((file) => file.endsWith(`/${path}`));
  const missing = [...texts, ...others].flatMap(([name, text]) =>
    [...text.matchAll(namedFiles)]
      .map(([, path]) => path!)
      .filter((path) => !foreignFiles.has(path) && !isThere(path))
      .map((path) => `${name}: ${path}`),
  );
  expect(missing).toEqual([]);
});

test("docs/cli.md lists each key of fermata.json that needs trust", () => {
  const [, list] = /until you trust the folder: (.*?)\. /su.exec(
    new Map(texts).get("docs/cli.md")!,
  )!;
  const named = [...list!.matchAll(/`(\w+)`/gu)].map(([, key]) => key!);
  const closed = Object.entries(serveOptions)
    .filter(([key, spec]) => key !== "config" && !("fromFolder" in spec))
    .map(([key]) => key);
  expect(named.sort()).toEqual(closed.sort());
});
