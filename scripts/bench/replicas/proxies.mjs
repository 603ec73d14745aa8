// HAProxy and nginx as packaging/ configures them, in front of servers on other ports.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { startProcess } from "../processes.mjs";
import { root } from "../../setup/paths.mjs";

const njs = [
  "/usr/lib/nginx/modules/ngx_http_js_module.so",
  "/usr/lib64/nginx/modules/ngx_http_js_module.so",
].find((path) => existsSync(path));

/** The path of the program, with what its configuration needs; null: it is not installed. */
export function findProxy(kind) {
  if (kind === "nginx" && njs === undefined) return null;
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, kind)).find((path) => existsSync(path)) ?? null;
}

/** A port that was free a moment ago. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** As the comments of the configurations say it. */
function byPrefix(text) {
  return text
    .replace("hash $fermata_conversation", "hash $fermata_prefix")
    .replace(/^ *hash-balance-factor.*$/m, "");
}

function configurationOf(kind, port, ports) {
  const file = join(root, "packaging", kind === "haproxy" ? "haproxy.cfg" : "nginx.conf");
  const text = readFileSync(file, "utf8").replace(/127\.0\.0\.1:800([123])/g, (_, number) => {
    return `127.0.0.1:${ports[number - 1]}`;
  });
  return text.replace(/(bind|listen) +:?8000/, `$1 127.0.0.1:${port}`);
}

/** What belongs to the distribution, not to the configuration that is tried. */
function placeNginx(text, folder) {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(" ");
  const user = process.getuid?.() === 0 ? "user root;" : "";
  return `daemon off; pid ${folder}/pid; error_log stderr; ${user}\n${text
    .replace("modules/ngx_http_js_module.so", njs)
    .replace("http {", `http { access_log off; ${temporary}`)}`;
}

/** @param ports of the replicas r1 to r3. Resolves with { url, pid, stop } when it listens. */
export async function startProxy(kind, ports, { isByPrefix = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), `fermata-${kind}-`));
  const port = await freePort();
  const config = join(folder, "proxy.conf");
  const given = configurationOf(kind, port, ports);
  const text = isByPrefix ? byPrefix(given) : given;
  writeFileSync(config, kind === "nginx" ? placeNginx(text, folder) : text);
  const script = "nginx-affinity.js";
  writeFileSync(join(folder, script), readFileSync(join(root, "packaging", script)));
  const args = kind === "nginx" ? ["-p", folder, "-c", config] : ["-db", "-f", config];
  const { child, closed } = startProcess(findProxy(kind), args);
  const ended = closed.then(({ tail }) => {
    throw new Error(`${kind} ended:\n${tail}`);
  });
  ended.catch(() => {});
  const url = `http://127.0.0.1:${port}`;
  await Promise.race([listens(url), ended]);
  return {
    url,
    pid: child.pid,
    async stop() {
      child.kill("SIGTERM");
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function listens(url) {
  for (;;) {
    try {
      await fetch(`${url}/health`);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
