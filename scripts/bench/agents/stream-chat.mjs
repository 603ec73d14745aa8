import { request } from "node:http";

function post(url, body) {
  return new Promise((resolve, reject) => {
    // A connection each: llama-server closes the last one while it would be used again.
    const sent = request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      agent: false,
    });
    sent.on("response", resolve);
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

async function* serverSentEvents(response) {
  let rest = "";
  response.setEncoding("utf8");
  for await (const text of response) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

/**
 * One streamed chat completion. Returns { text, usage, finish, ttft, gaps, replica } with times in
 * milliseconds: to the first token, and between the chunks that carry text. `replica` is the name of
 * who answered, if it has one.
 */
export async function streamChat(url, body) {
  const start = performance.now();
  const response = await post(`${url}/v1/chat/completions`, {
    ...body,
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let usage;
  let finish;
  let last;
  const gaps = [];
  let ttft;
  for await (const chunk of serverSentEvents(response)) {
    if (chunk.error) throw new Error(`the server failed: ${JSON.stringify(chunk.error)}`);
    usage = chunk.usage ?? usage;
    const choice = chunk.choices?.[0];
    finish = choice?.finish_reason ?? finish;
    const delta = choice?.delta?.content;
    if (!delta) continue;
    text += delta;
    const now = performance.now();
    if (last === undefined) ttft = now - start;
    else gaps.push(now - last);
    last = now;
  }
  if (response.statusCode !== 200) throw new Error(`the server answered ${response.statusCode}`);
  if (ttft === undefined || !usage) throw new Error("the answer has no text or no usage");
  const replica = response.headers["x-fermata-replica"];
  return { text, usage, finish, ttft, gaps, replica };
}
