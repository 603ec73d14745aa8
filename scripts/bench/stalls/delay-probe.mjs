/** In the server's process: how late its event loop is, in milliseconds. */

import { monitorEventLoopDelay } from "node:perf_hooks";

const resolution = 5;
const delay = monitorEventLoopDelay({ resolution });
delay.enable();
process.on("message", (message) => {
  if (message === "reset") delay.reset();
  if (message !== "read") return;
  const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolution);
  process.send({
    p50: late(delay.percentile(50)),
    p99: late(delay.percentile(99)),
    longest: late(delay.max),
  });
});
process.channel?.unref();
