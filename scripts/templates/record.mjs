// Records what llama.cpp renders of its own templates: test/fixtures/templates/llama-cpp.json.
//   node scripts/templates/record.mjs LLAMA_CPP_SOURCE LLAMA_CPP_BUILD
// The build must contain the target llama-common. --texts DIR keeps the texts themselves.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [source, build, flag, textDirectory] = process.argv.slice(2);
const fixtures = resolve(import.meta.dirname, "../../test/fixtures/templates");
const renderer = join(tmpdir(), "fermata-render-llama-cpp");

function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 2 ** 28, ...options });
  if (result.error) throw result.error;
  return result;
}

function compile() {
  const libraries = run("find", [build, "-name", "*.a"]).stdout.trim().split("\n");
  const args = [
    "-std=c++20",
    "-O1",
    join(import.meta.dirname, "render-llama-cpp.cpp"),
    "-o",
    renderer,
  ];
  for (const folder of ["common", "include", "ggml/include", "vendor"])
    args.push(`-I${join(source, folder)}`);
  args.push(
    "-Wl,--start-group",
    ...libraries.filter((name) => /common|llama\.a|ggml|vendor/u.test(name)),
  );
  const result = run("g++", [...args, "-Wl,--end-group", "-lpthread", "-ldl"], {
    stdio: "inherit",
  });
  if (result.status !== 0) process.exit(1);
}

function digest(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/**
 * Templates without it, but with Mistral's other markers, are Ministral 3's to llama.cpp's server,
 * which then makes parts of the messages before it renders them.
 */
const notMinistral = "{#- [CALL_ID] -#}";

function render(template) {
  const input = titles.map((title) => JSON.stringify({ template, ...requests[title] })).join("\n");
  const { stdout } = run(renderer, [], { input, env: { TZ: "UTC" } });
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function digests(answers) {
  return answers.map(({ prompt }) => (prompt === undefined ? null : digest(prompt)));
}

compile();
const requests = JSON.parse(readFileSync(join(fixtures, "requests.json"), "utf8"));
const titles = Object.keys(requests);
const recorded = {};
for (const name of readdirSync(join(source, "models/templates")).sort()) {
  if (!name.endsWith(".jinja")) continue;
  const template = readFileSync(join(source, "models/templates", name), "utf8");
  const answers = render(template);
  const known = digests(answers);
  const unprepared = digests(render(notMinistral + template));
  recorded[name] = {
    source: digest(template),
    renders: Object.fromEntries(titles.map((title, index) => [title, known[index]])),
    unprepared: Object.fromEntries(
      titles
        .map((title, index) => [title, unprepared[index], known[index]])
        .filter(([, one, other]) => one !== other)
        .map(([title, one]) => [title, one]),
    ),
  };
  if (flag === "--texts") {
    mkdirSync(textDirectory, { recursive: true });
    writeFileSync(join(textDirectory, `${name}.json`), JSON.stringify(answers, null, 1));
  }
}
writeFileSync(join(fixtures, "llama-cpp.json"), `${JSON.stringify(recorded, null, 1)}\n`);
