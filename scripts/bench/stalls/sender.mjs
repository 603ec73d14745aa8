/** A thread that sends the requests of a case, so that the thread with the stream only looks at the clock. */

import { request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { cases } from "./requests.mjs";

let prepared = [];

parentPort.on("message", async (message) => {
  if (message.prepare !== undefined) {
    prepared = await cases[message.prepare](call);
    parentPort.postMessage({});
    return;
  }
  const start = performance.now();
  const answers = [];
  for (const parts of prepared) answers.push(await call(...parts));
  const status = [...new Set(answers.map((answer) => answer.status))].join("/");
  parentPort.postMessage({ status, ms: performance.now() - start });
});

/** @param body a value, or JSON text as bytes */
function call(method, path, body) {
  const bytes =
    body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  return new Promise((resolve) => {
    const sent = request(workerData.url + path, {
      method,
      headers: bytes && { "content-type": "application/json", "content-length": bytes.length },
    });
    sent.on("error", (error) => resolve({ status: error.code, text: "" }));
    sent.on("response", async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode, text });
    });
    sent.end(bytes);
  });
}
