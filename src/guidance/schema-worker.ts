/** The entry of the thread that works with schemas: jobs in, an outcome for each, up to a failure. */

import { readlinkSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { type SchemaJob, runJob } from "./schema-jobs.ts";

parentPort!.on("message", (jobs: readonly SchemaJob[]) => {
  for (const job of jobs) {
    const outcome = runJob(job);
    parentPort!.postMessage(outcome);
    if ("error" in outcome) return;
  }
});
parentPort!.postMessage({ ready: clockFile() });

/** Where the system tells this thread's processor time; null where it does not. */
function clockFile(): string | null {
  try {
    return `/proc/${readlinkSync("/proc/thread-self")}/stat`;
  } catch {
    return null;
  }
}
