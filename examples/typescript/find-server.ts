// Where the server is, for the examples beside this file.

/**
 * Its address and key, once it has answered. Without a server the program ends and says what starts one.
 * @param start the command that starts the server which the example needs
 */
export async function findServer(start: string): Promise<{ baseURL: string; apiKey: string }> {
  const baseURL = process.env["FERMATA_URL"] ?? "http://127.0.0.1:8000/v1";
  const apiKey = process.env["FERMATA_KEY"] ?? "none";
  const problem = await problemOf(`${baseURL}/models`, apiKey);
  if (problem === null) return { baseURL, apiKey };
  console.error(
    `Expected a server at ${baseURL} (${problem}). Start it with: ${start}\nFERMATA_URL is the address of another one, FERMATA_KEY its key.`,
  );
  process.exit(1);
}

async function problemOf(url: string, apiKey: string): Promise<string | null> {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } });
    await response.body?.cancel();
    return response.ok ? null : `${response.status} ${response.statusText}`;
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    return cause?.code ?? message;
  }
}
