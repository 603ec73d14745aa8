import { flagList } from "../flags.mjs";
import { runProcess } from "../processes.mjs";
import { peers } from "./build-peers.mjs";

const layouts = [
  ["unified", ["-kvu"]],
  ["streams", ["--no-kv-unified"]],
];
const attentions = [
  ["flash-attn on", ["-fa", "on"]],
  ["flash-attn off", ["-fa", "off"]],
];
const cacheTypes = [
  ["K f16", ["-ctk", "f16"]],
  ["K q8_0", ["-ctk", "q8_0"]],
];

/** Every way llama-batched-bench can share a prompt: { name, flags }. */
export const arrangements = layouts.flatMap((layout) =>
  attentions.flatMap((attention) =>
    cacheTypes.map((type) => ({
      name: [layout, attention, type].map(([name]) => name).join(", "),
      flags: [layout, attention, type].flatMap(([, flags]) => flags),
    })),
  ),
);

/**
 * Runs `sequences` that share a prompt of `promptTokens` and generate `generated` tokens each.
 * Returns { prefill, decode } in tokens per second in all, and `seconds` for both together.
 */
export async function runBatchedBench(arrangement, load) {
  const { model, threads, sequences, promptTokens, generated } = load;
  const flags = flagList({
    "-m": model,
    "-t": threads,
    "-c": sequences * (promptTokens + generated + 8),
    "-pps": true,
    "-npp": promptTokens,
    "-ntg": generated,
    "-npl": sequences,
    "--output-format": "jsonl",
  });
  const output = await runProcess(peers.batchedBench, [...flags, ...arrangement.flags]);
  const line = output.split("\n").find((text) => text.startsWith("{"));
  const { speed_pp: prefill, speed_tg: decode, t: seconds } = JSON.parse(line);
  return { prefill, decode, seconds };
}
