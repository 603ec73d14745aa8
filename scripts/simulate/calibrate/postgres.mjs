import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { serveOptions, modelOf } from "./servers.mjs";
import { freePort } from "../../bench/replicas/proxies.mjs";
import { startReplica } from "../../bench/replicas/replica.mjs";
import { system, taskOf } from "../../bench/agents/dialogue.mjs";

const debian = "/usr/lib/postgresql";
const clients = 16;
const seconds = 8;
const turns = 6;

/** The folder of Debian's newest programs, or FERMATA_POSTGRES; undefined: there are none. */
function findPrograms() {
  const named = process.env.FERMATA_POSTGRES;
  if (named) return named;
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  return versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(debian, version, "bin"))
    .find((folder) => existsSync(join(folder, "pgbench")));
}

/** Its programs refuse to run as root. */
function userForPrograms() {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "nobody"])));
  return { uid, gid };
}

/** A server with Debian's defaults, which wait for the disk at each commit. */
async function startPostgres(programs) {
  const user = userForPrograms();
  const folder = mkdtempSync(join(tmpdir(), "fermata-postgres-"));
  chmodSync(folder, 0o755);
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const quiet = { ...user, cwd: folder, stdio: "pipe" };
  const data = join(folder, "data");
  execFileSync(join(programs, "initdb"), ["-D", data, "-U", "fermata", "-A", "trust"], quiet);
  const port = await freePort();
  const flags = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  const args = ["-D", data, "-p", String(port), ...flags.flatMap((flag) => ["-c", flag])];
  const child = spawn(join(programs, "postgres"), args, { ...user, cwd: folder, stdio: "ignore" });
  const address = `postgres://fermata@127.0.0.1:${port}/postgres`;
  await isUp(address);
  return {
    address,
    user,
    folder,
    async stop() {
      const closed = new Promise((resolve) => child.on("close", resolve));
      child.kill("SIGINT");
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
}

async function isUp(address) {
  for (;;) {
    try {
      return await query(address, "SELECT 1");
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function query(address, text) {
  const client = new pg.Client(address);
  await client.connect();
  try {
    return (await client.query(text)).rows[0];
  } finally {
    await client.end();
  }
}

const commits = async (address) => {
  const text = "SELECT sum(xact_commit)::int AS count FROM pg_stat_database";
  return (await query(address, text)).count;
};

/** Commits per second of transactions that insert an event of a stream, as pgbench counts them. */
async function insertsPerSecond(programs, { address, user, folder }) {
  await query(address, "CREATE TABLE bench_events (stream text, sequence bigint, event text)");
  const script = join(folder, "insert.sql");
  const insert = `INSERT INTO bench_events VALUES ('resp_r1', :client_id, repeat('x', 300));\n`;
  writeFileSync(script, insert);
  const args = ["-n", "-f", script, "-c", String(clients), "-T", String(seconds), address];
  const output = execFileSync(join(programs, "pgbench"), args, {
    ...user,
    cwd: folder,
    stdio: "pipe",
  });
  return Number(/tps = ([\d.]+)/.exec(String(output))[1]);
}

/** Commits for each turn of a stored response with a stream, 64 tokens long. */
async function commitsPerTurn({ address }) {
  const options = [...serveOptions(await modelOf("tiny")), `--store=${address}`];
  const server = await startReplica("r1", options);
  const ask = async (turn) => {
    const body = { input: `${system} ${taskOf(turn)}`, max_output_tokens: 64, stream: true };
    const response = await fetch(`${server.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...body, model: "default", temperature: 0 }),
    });
    await response.text();
  };
  await ask(0);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const before = await commits(address);
  for (let turn = 1; turn <= turns; turn++) await ask(turn);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const after = await commits(address);
  await server.stop();
  return (after - before) / turns;
}

export async function measurePostgres() {
  const programs = findPrograms();
  if (!programs) return null;
  const server = await startPostgres(programs);
  try {
    return {
      commitsPerTurn: await commitsPerTurn(server),
      commitsPerSecond: await insertsPerSecond(programs, server),
    };
  } finally {
    await server.stop();
  }
}
