// The limits of the parts that replicas share: the database, the remote cache, the proxy; and of a disk.
import { measureDisk } from "./disk.mjs";
import { measurePostgres } from "./postgres.mjs";
import { measureProxy } from "./proxy.mjs";
import { measureRemote } from "./remote.mjs";

/** A part that this machine does not have is null. */
export async function measureParts(progress) {
  progress("disk");
  const disk = await measureDisk();
  progress("Redis");
  const remote = await measureRemote();
  progress("HAProxy");
  const proxy = await measureProxy();
  progress("Postgres");
  const postgres = await measurePostgres();
  return { disk, remote, proxy, postgres };
}
