import { join } from "node:path";
import { distDir } from "../../setup/paths.mjs";
import { flagList } from "../flags.mjs";
import { peers } from "../peers/build-peers.mjs";
import { startServer } from "./start-server.mjs";

const fermataMain = join(distDir, "cli", "main.js");

/**
 * Without `threads` as many as Fermata chooses. `drafts`: what random weights say repeats itself as no text does, so only
 * the part that measures drafts has any.
 */
export const fermata = (label, flags, drafts = ["--no-drafts"]) => ({
  name: `Fermata, ${label}`,
  isFermata: true,
  flags: [...flags, ...drafts],
  start: ({ model, threads }) =>
    startServer("Fermata", process.execPath, [
      fermataMain,
      "serve",
      ...flagList({ "--model": model, ...(threads !== undefined && { "--threads": threads }) }),
      ...flags,
      ...drafts,
    ]),
});

export const llamaServer = (label, flags) => ({
  name: `llama-server, ${label}`,
  isFermata: false,
  flags,
  start: ({ model, threads }) =>
    startServer("llama-server", peers.server, [
      ...flagList({ "-m": model, "-t": threads, "--host": "127.0.0.1" }),
      ...flags,
    ]),
});

const eightAgents = ["--parallel", "8", "--ctx-size", "4096"];

/** Eight slots of 4,096 tokens, in one pool or in streams of their own; idle ones keep their cells. */
const slots = ["-np", "8", "-c", "32768", "--no-cache-idle-slots"];
const streams = [...slots, "--no-kv-unified"];
const pool = [...slots, "--kv-unified"];

/** What the agent load runs on. The tuned ones are the settings that may suit llama-server best. */
export const contestants = [
  fermata("8 agents", eightAgents),
  fermata("8 agents in a pool, K q8_0", [
    ...eightAgents,
    "--cache-type-k",
    "q8_0",
    "--kv-layout",
    "unified",
  ]),
  fermata("8 agents, K q8_0", [...eightAgents, "--cache-type-k", "q8_0"]),
  fermata("as it comes", []),
  llamaServer("as it comes", []),
  llamaServer("8 streams", streams),
  llamaServer("8 streams, no flash-attn", [...streams, "-fa", "off"]),
  llamaServer("8 streams, no flash-attn, K q8_0", [...streams, "-fa", "off", "-ctk", "q8_0"]),
  llamaServer("8 in a pool", pool),
  llamaServer("8 in a pool, no flash-attn", [...pool, "-fa", "off"]),
  llamaServer("8 in a pool, no flash-attn, K q8_0", [...pool, "-fa", "off", "-ctk", "q8_0"]),
];
