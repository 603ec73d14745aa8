// Installs the packages where there is no compiler, and asks the server that they bring a question.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
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

/**
 * @param bill the bill of materials, as text
 * @throws SetupError when the packages do not install, bring something that is not in the bill, or do not answer
 */
export async function checkPackages(tarballs, bill) {
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
    const installedAt = performance.now();
    checkBill(join(place, "node_modules"), JSON.parse(bill));
    const main = join(place, "node_modules", packageName, "dist", "cli", "main.js");
    const serve = [main, "serve", "--store", "none"];
    const server = await startServer("The installed server", process.execPath, serve, { env });
    const text = await server.during(ask);
    await server.stop();
    if (text === "") throw new SetupError("The installed server answered nothing.");
    const [all, installing] = [performance.now(), installedAt].map((end) =>
      ((end - started) / 1000).toFixed(1),
    );
    say(
      `Installed without a compiler (${installing} s), served and answered in ${all} s: ${JSON.stringify(text)}`,
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** What npm has installed is in the bill, in that version. */
function checkBill(modules, { components }) {
  const known = new Set(
    components.map(({ group, name, version }) => `${group ? `${group}/` : ""}${name} ${version}`),
  );
  const { packages } = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8"));
  const strange = Object.entries(packages)
    .map(
      ([path, { version }]) => `${path.slice(path.lastIndexOf("node_modules/") + 13)} ${version}`,
    )
    .filter((one) => !one.startsWith(packageName) && !known.has(one));
  if (strange.length > 0)
    throw new SetupError(`Installed, but not in the bill of materials: ${strange.join(", ")}.`);
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
