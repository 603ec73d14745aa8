// Installs the packages where there is no compiler, and asks the server that they bring a question.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../bench/servers/start-server.mjs";
import { SetupError, say } from "../setup/report.mjs";
import { runOrFail } from "../setup/run.mjs";
import { findProgram } from "../setup/toolchain.mjs";
import { packageName } from "./packages.mjs";

/** A PATH with Node alone: no compiler, no cargo, no git. npm needs a shell and `env`. */
function bareBin(directory) {
  mkdirSync(directory);
  symlinkSync(process.execPath, join(directory, "node"));
  for (const tool of ["sh", "env"]) symlinkSync(`/bin/${tool}`, join(directory, tool));
  return directory;
}

/** npm itself, which is not on that PATH. */
function npmScript() {
  return process.env.npm_execpath ?? realpathSync(findProgram("npm"));
}

/** @throws SetupError when the packages do not install, or what they install does not answer */
export async function checkPackages(tarballs) {
  const directory = mkdtempSync(join(tmpdir(), "fermata-release-"));
  try {
    const started = performance.now();
    const env = { PATH: bareBin(join(directory, "bin")), HOME: directory };
    const install = ["install", "--no-audit", "--no-fund", ...tarballs];
    const place = join(directory, "place");
    mkdirSync(place);
    await runOrFail("Installing the packages", process.execPath, [npmScript(), ...install], {
      cwd: place,
      env,
    });
    const main = join(place, "node_modules", packageName, "dist", "cli", "main.js");
    const serve = [main, "serve", "--store", "none"];
    const server = await startServer("The installed server", process.execPath, serve, { env });
    const text = await server.during(ask);
    await server.stop();
    if (text === "") throw new SetupError("The installed server answered nothing.");
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    say(
      `Installed without a compiler, served and answered in ${seconds} s: ${JSON.stringify(text)}`,
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function ask(url) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hello!" }], max_tokens: 32 }),
  });
  const { choices } = await response.json();
  return choices?.[0]?.message.content ?? "";
}
