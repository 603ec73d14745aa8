import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { system, taskOf, tools } from "../../bench/agents/dialogue.mjs";
import { findProxy, startProxy } from "../../bench/replicas/proxies.mjs";

const requests = 400;
const ticksPerSecond = 100;

/** What the process has computed so far, in milliseconds. */
function cpuMs(pid) {
  const [user, kernel] = readFileSync(`/proc/${pid}/stat`, "utf8")
    .split(") ")[1]
    .split(" ")
    .slice(11, 13);
  return (1000 * (Number(user) + Number(kernel))) / ticksPerSecond;
}

/** HAProxy as packaging/ configures it reads each request's body: what that takes of one core. */
export async function measureProxy() {
  if (!findProxy("haproxy")) return null;
  const backend = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.end("{}"));
  });
  await new Promise((resolve) => backend.listen(0, "127.0.0.1", resolve));
  const { port } = backend.address();
  const proxy = await startProxy("haproxy", [port, port, port]);
  const messages = [
    { role: "system", content: system },
    { role: "user", content: taskOf(1) },
    ...Array.from({ length: 8 }, (_, index) => ({ role: "user", content: taskOf(index) })),
  ];
  const body = JSON.stringify({ model: "default", messages, tools });
  const headers = { "content-type": "application/json" };
  const send = async () => {
    const response = await fetch(`${proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
    });
    await response.text();
  };
  for (let index = 0; index < 20; index++) await send();
  const before = cpuMs(proxy.pid);
  for (let index = 0; index < requests; index++) await send();
  const cpuMsPerRequest = (cpuMs(proxy.pid) - before) / requests;
  await proxy.stop();
  backend.close();
  return { cpuMsPerRequest, bodyBytes: Buffer.byteLength(body) };
}
