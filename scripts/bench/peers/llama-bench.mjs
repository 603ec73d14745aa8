import { flagList } from "../flags.mjs";
import { runProcess } from "../processes.mjs";
import { peers } from "./build-peers.mjs";

/**
 * One repetition of llama-bench. Returns [{ depth, prefill, decode }] in tokens per second: prefill
 * of `prefillTokens` and decode of `decodeTokens`, each after `depth` tokens.
 */
export async function runLlamaBench({
  model,
  threads,
  setting,
  depths,
  prefillTokens,
  decodeTokens,
}) {
  const flags = flagList({
    "-m": model,
    "-t": threads,
    "-r": 1,
    "-o": "json",
    "-p": prefillTokens,
    "-n": decodeTokens,
    "-d": depths.join(","),
    "-fa": setting.flashAttention ? 1 : 0,
    "-ctk": setting.cacheTypeK,
    "-ctv": setting.cacheTypeV,
  });
  const output = await runProcess(peers.bench, flags);
  const tests = JSON.parse(output);
  const speed = (depth, field) =>
    tests.find((test) => test.n_depth === depth && test[field] > 0).avg_ts;
  return depths.map((depth) => ({
    depth,
    prefill: speed(depth, "n_prompt"),
    decode: speed(depth, "n_gen"),
  }));
}
