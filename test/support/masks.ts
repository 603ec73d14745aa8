// Whether this build has llguidance. Without cargo it has GBNF only, and tests of masks are skipped.
import { loadTestEngine } from "./engine.ts";

async function probe(): Promise<boolean> {
  const engine = await loadTestEngine({ contextSize: 64, parallel: 1, audit: false });
  const compiled = engine.compileGrammar({ kind: "lark", text: 'start: "a"' });
  const isThere = await compiled.then(
    () => true,
    (error: Error) => !error.message.includes("no llguidance"),
  );
  await engine.close();
  if (!isThere) console.log("skipped: this build has no llguidance; install Rust and set up again");
  return isThere;
}

export const hasMasks: boolean = await probe();
