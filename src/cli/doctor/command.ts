import type { Command } from "../command.ts";
import type { OptionTable } from "../option-table.ts";
import { serveOptions } from "../options.ts";

export const doctorOptions = {
  json: {
    group: "Doctor",
    kind: "boolean",
    default: false,
    help: "Print all of it as one JSON object.",
  },
} as const satisfies OptionTable;

export const doctorCommand: Command = {
  name: "doctor",
  summary: "Say what this machine can do, what would be served, and what is wrong.",
  usage: "doctor [options]",
  operands: { min: 0, max: 0 },
  options: { ...doctorOptions, ...serveOptions },
  examples: `  The machine, the build, and what "fermata serve" would do here:
    fermata doctor
  Would this model fit, with these options?
    fermata doctor --model Qwen3-8B-Q4_K_M.gguf --ctx-size 32768 --parallel 8
  For a bug report, or a script:
    fermata doctor --json
`,
  notes: `It takes every option of "fermata serve", loads no model and changes nothing. Exit code: 0 if
serving would work, 1 if something must be done first.
`,
};
