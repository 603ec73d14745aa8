/** The entry of the thread that works with schemas: jobs in, an outcome for each. */

import { readFileSync, readlinkSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { type SchemaJob, runJob } from "./schema-jobs.ts";

parentPort!.on("message", (jobs: readonly SchemaJob[]) => {
  for (const job of jobs) parentPort!.postMessage(runJob(job));
});
parentPort!.postMessage({ ready: clockFile() });

/** Where the system tells how long this thread ran and waited for a processor; null where it does not. */
function clockFile(): string | null {
  try {
    const file = `/proc/${readlinkSync("/proc/thread-self")}/schedstat`;
    return Number.parseInt(readFileSync(file, "utf8"), 10) > 0 ? file : null;
  } catch {
    return null;
  }
}
