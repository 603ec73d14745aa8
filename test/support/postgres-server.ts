/** A Postgres server of its own for each test process that asks for one. It ends with the process, and its files go too. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";

/** No log and no error may have it. */
export const password = "s3cret-word";

const debian = "/usr/lib/postgresql";

/** The folder of `initdb` and `postgres`: FERMATA_POSTGRES, or Debian's newest. Null: there is none on this machine. */
export function postgresPrograms(): string | null {
  const named = process.env["FERMATA_POSTGRES"];
  if (named !== undefined) return named;
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const found = versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(debian, version, "bin"))
    .find((folder) => existsSync(join(folder, "initdb")));
  return found ?? null;
}

/** Its programs refuse to run as root, and hang below a sanitizer's runtime. */
function surroundings(): { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number } {
  const { LD_PRELOAD: _, ...env } = process.env;
  const plain = { cwd: "/", env };
  if (process.getuid?.() !== 0) return plain;
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" })),
  );
  return { ...plain, uid: uid!, gid: gid! };
}

/** The server's files go when the input closes, with whoever held it. */
const keeper = `
"$1/postgres" -D "$2/data" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \\
  -c fsync=off -c max_connections=200 >"$2/log" 2>&1 &
echo $!
cat >/dev/null
kill -QUIT $! 2>/dev/null; wait
[ -e "$2/keep" ] || rm -rf "$2"`;

export class PostgresServer {
  readonly #bin: string;
  readonly #folder: string;
  readonly #port: number;
  #keeper: ChildProcess | null = null;
  #pid = 0;

  private constructor(bin: string, folder: string, port: number) {
    this.#bin = bin;
    this.#folder = folder;
    this.#port = port;
  }

  static async create(bin: string): Promise<PostgresServer> {
    const { uid, gid } = surroundings();
    // Another user must be able to reach it.
    const parent = uid === undefined ? tmpdir() : "/tmp";
    const folder = mkdtempSync(join(parent, "fermata-postgres-"));
    chmodSync(folder, 0o755);
    if (uid !== undefined) chownSync(folder, uid, gid!);
    const secret = `printf %s ${password} >"$2/secret" && exec "$1/initdb" -D "$2/data" -U fermata -A scram-sha-256 \\
      --pwfile="$2/secret" -E UTF8 --locale=C --no-sync`;
    execFileSync("sh", ["-c", secret, "sh", bin, folder], { ...surroundings(), stdio: "pipe" });
    const server = new PostgresServer(bin, folder, await freePort());
    await server.start();
    return server;
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const args = ["-c", keeper, "sh", this.#bin, this.#folder, String(this.#port)];
    const keeping = spawn("sh", args, { ...surroundings(), stdio: ["pipe", "pipe", "ignore"] });
    const [pid] = (await once(keeping.stdout!, "data")) as [Buffer];
    this.#pid = Number(String(pid));
    keeping.stdout!.destroy();
    // The tests' process need not wait for it.
    (keeping.stdin as Socket).unref();
    keeping.unref();
    this.#keeper = keeping;
    for (;;) {
      const client = new pg.Client(this.address("postgres"));
      client.on("error", () => {});
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (keeping.exitCode !== null) throw error;
        await setTimeout(20);
      }
    }
  }

  /** As if the machine's memory had run out: no process of it ends anything. */
  async kill(): Promise<void> {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
    const left = (): boolean => existsSync(`/proc/${this.#pid}/stat`);
    execFileSync("touch", [join(this.#folder, "keep")]);
    this.#keeper!.stdin!.end();
    while (this.#keeper!.exitCode === null || left()) await setTimeout(5);
    execFileSync("rm", [join(this.#folder, "keep")]);
  }

  async stop(): Promise<void> {
    this.#keeper!.stdin!.end();
    if (this.#keeper!.exitCode === null) await once(this.#keeper!, "exit");
  }

  address(database: string): string {
    return `postgres://fermata:${password}@127.0.0.1:${this.#port}/${database}`;
  }

  /** A database with nothing of ours in it, the same each time for the same name. @returns its address */
  async emptyDatabase(name = "postgres"): Promise<string> {
    const make = `CREATE DATABASE ${name}`;
    await onDatabase(this.address("postgres"), make).catch((error: { code?: string }) => {
      if (error.code !== "42P04") throw error;
    });
    await onDatabase(this.address(name), "DROP SCHEMA IF EXISTS fermata CASCADE");
    return this.address(name);
  }

  /** What it has said. */
  log(): string {
    return readFileSync(join(this.#folder, "log"), "utf8");
  }
}

/** The rows of the last statement. */
export async function onDatabase<Row>(address: string, statements: string): Promise<Row[]> {
  const client = new pg.Client(address);
  await client.connect();
  try {
    const results = [await client.query(statements)].flat();
    return results.at(-1)!.rows as Row[];
  } finally {
    await client.end();
  }
}

let started: Promise<PostgresServer | null> | undefined;

/** The one of this process. Null: this machine has no Postgres, and tests of it are skipped. */
export function postgresServer(): Promise<PostgresServer | null> {
  const bin = postgresPrograms();
  started ??= bin === null ? Promise.resolve(null) : PostgresServer.create(bin);
  return started;
}

function childrenOf(pid: number): number[] {
  const children = execFileSync("sh", ["-c", `cat /proc/${pid}/task/*/children || true`], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return children.split(/\s+/).filter(Boolean).map(Number);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
