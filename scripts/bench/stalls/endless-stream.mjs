/** A stream that does not end by itself for minutes. */

const body = JSON.stringify({
  prompt: "Once",
  max_tokens: 8000,
  ignore_eos: true,
  stream: true,
  temperature: 2,
  top_k: 0,
  min_p: 0,
});

/** Resolves once the headers have come. */
export async function openEndlessStream(url, onPiece) {
  const abort = new AbortController();
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    signal: abort.signal,
    headers: { "content-type": "application/json" },
    body,
  });
  const ended = (async () => {
    for await (const piece of response.body) onPiece(piece);
  })();
  ended.catch(() => {});
  return { ended, leave: () => abort.abort() };
}
