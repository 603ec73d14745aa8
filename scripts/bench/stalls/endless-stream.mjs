/** A stream that does not end by itself: the request is sent again when its tokens are used up. */

const body = JSON.stringify({
  prompt: "Once",
  max_tokens: 8000,
  ignore_eos: true,
  stream: true,
  temperature: 2,
  top_k: 0,
  min_p: 0,
});

/** Resolves once the headers have come. `ended` settles when the server ends it or its connection. */
export async function openEndlessStream(url, onPiece) {
  const abort = new AbortController();
  const ask = () =>
    fetch(`${url}/v1/completions`, {
      method: "POST",
      signal: abort.signal,
      headers: { "content-type": "application/json" },
      body,
    });
  let response = await ask();
  const ended = (async () => {
    while (await isUsedUp(response, onPiece)) response = await ask();
  })();
  ended.catch(() => {});
  return { ended, leave: () => abort.abort() };
}

/** Whether all its tokens came. */
async function isUsedUp(response, onPiece) {
  const decoder = new TextDecoder();
  let tail = "";
  for await (const piece of response.body) {
    onPiece(piece);
    tail = (tail + decoder.decode(piece, { stream: true })).slice(-2000);
  }
  return tail.includes('"finish_reason":"length"') && tail.includes("data: [DONE]");
}
