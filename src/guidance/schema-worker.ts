/** The entry of the thread that works with schemas: jobs in, an outcome for each, up to a failure. */

import { parentPort } from "node:worker_threads";
import { type SchemaJob, runJob } from "./schema-jobs.ts";

parentPort!.on("message", (jobs: readonly SchemaJob[]) => {
  for (const job of jobs) {
    const outcome = runJob(job);
    parentPort!.postMessage(outcome);
    if ("error" in outcome) return;
  }
});
parentPort!.postMessage("ready");
