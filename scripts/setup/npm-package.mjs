import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "./report.mjs";
import { npmCommand, runOrFail } from "./run.mjs";

/** Downloads a package into an empty folder and returns the archive's path. `pinnedBy`: where its hash stands. */
export async function downloadPackage(spec, integrity, directory, pinnedBy) {
  const [program, args] = npmCommand(["pack", spec, "--silent", "--pack-destination", directory]);
  await runOrFail(`Downloading ${spec}`, program, args, { cwd: directory });
  const archive = join(
    directory,
    readdirSync(directory).find((name) => name.endsWith(".tgz")),
  );
  const hash = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (hash !== integrity) {
    throw new SetupError(
      `${spec} is not what ${pinnedBy} pins.\nexpected ${integrity}\nreceived ${hash}`,
    );
  }
  return archive;
}
