#!/usr/bin/env node
// node scripts/checks/request-path.mjs [--list]: how much code a request passes.
// Sends POST /v1/chat/completions with tools, and a streamed response whose tools run here, to a server in this
// process (compiled into dist/, with the model that ships), and counts with V8's coverage: the files of src/ that run
// between the route and the addon's submit, and the async generators that a token passes on its way back.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Session } from "node:inspector";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { root } from "../setup/paths.mjs";

const dist = join(root, "dist");
const load = (file) => import(pathToFileURL(join(dist, file)).href);
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Files and functions of dist/ that ran since the last call. */
function ranSince() {
  let scripts = [];
  // Within one thread the answer comes before `post` returns.
  session.post("Profiler.takePreciseCoverage", (_error, { result }) => (scripts = result));
  return scripts
    .filter(({ url }) => url.startsWith(pathToFileURL(dist).href))
    .map(({ url, functions }) => ({
      file: relative(dist, fileURLToPath(url)).replace(/\.js$/, ".ts"),
      path: fileURLToPath(url),
      functions: functions.filter(
        ({ functionName, ranges }) => functionName && ranges[0].count > 0,
      ),
    }))
    .filter(({ functions }) => functions.length > 0);
}

/** Async generators among them, as "file: name". */
function generatorsOf(files) {
  return files.flatMap(({ file, path, functions }) => {
    const source = readFileSync(path, "utf8");
    return functions
      .filter(({ ranges: [{ startOffset, endOffset }] }) =>
        /^(async\s*\*|async function\s*\*)/.test(source.slice(startOffset, endOffset)),
      )
      .map(({ functionName }) => `${file}: ${functionName}`);
  });
}

let onSubmit = () => {};
const { addonPath } = await load("native/addon.js");
const addon = createRequire(import.meta.url)(addonPath());
const loadModel = addon.load;
// The addon is made to tell when a sequence is submitted.
addon.load = (...given) => {
  const loading = loadModel.apply(addon, given);
  const engine = loading.engine.then((native) => {
    const submit = native.submit.bind(native);
    native.submit = (request) => {
      onSubmit();
      return submit(request);
    };
    return native;
  });
  return { engine, cancel: () => loading.cancel() };
};

const { parseArguments } = await load("cli/options/parse-arguments.js");
const { commands } = await load("cli/commands/commands.js");
const serveCommand = commands.find(({ name }) => name === "serve");
const { configOf } = await load("cli/options/config.js");
const { startService } = await load("cli/serve.js");
const given = ["--store=none", "--no-ui-server", "--log-level=error"];
const filesystem = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-filesystem/dist/index.js",
);
const mcp = ["--mcp-command=node", `--mcp-args=${filesystem},${join(root, "docs")}`];
const { values } = parseArguments([...given, ...mcp], serveCommand, root);
const service = await startService(configOf(values, {}, root), new AbortController().signal);

/** Sends the request twice, so that what is done once (for its tools, too) is done, and counts the second time. */
async function measure(title, url, payload) {
  await service.app.inject({ method: "POST", url, payload });
  ranSince();
  let toSubmit = null;
  onSubmit = () => (toSubmit ??= ranSince());
  const { statusCode, body } = await service.app.inject({ method: "POST", url, payload });
  onSubmit = () => {};
  const back = ranSince();
  if (statusCode !== 200) throw new Error(body);
  const generators = [...new Set(generatorsOf([...toSubmit, ...back]))];
  console.log(
    `${title}: ${toSubmit.length} files to the addon's submit, ${generators.length} async generators`,
  );
  if (process.argv.includes("--list")) {
    for (const { file } of toSubmit) console.log(`  ${file}`);
  }
  for (const generator of generators) console.log(`  async generator ${generator}`);
}

const question = "What is the weather in Paris?";
const parameters = { type: "object", properties: { location: { type: "string" } } };
const description = "Get the weather of a city";
const weather = { name: "get_weather", description, parameters };
const messages = [{ role: "user", content: question }];
const tools = [{ type: "function", function: weather }];
await measure("POST /v1/chat/completions with tools", "/v1/chat/completions", {
  messages,
  tools,
  stream: true,
});
const ask = "List the files in the folder.";
const run = { messages: [{ role: "user", content: ask }], stream: true, max_tokens: 8 };
await measure("POST /v1/chat/completions, tools run here", "/v1/chat/completions", run);
const response = { input: ask, stream: true, max_output_tokens: 8 };
await measure("POST /v1/responses, tools run here", "/v1/responses", response);
await service.close();
process.exit(0);
