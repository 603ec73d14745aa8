/** A failure whose message is all that the user needs; it ends the process with code 2. */
export class SetupError extends Error {}

export function say(text) {
  process.stderr.write(`fermata: ${text}\n`);
}

/** Runs `action` under a line that says what takes so long, and a line that says how long. */
export async function timed(title, action) {
  say(`${title} ...`);
  const start = performance.now();
  const result = await action();
  say(`${title}: done in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}

export function exitOnSetupError(error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`\nfermata: ${error.message}\n`);
  process.exit(2);
}
