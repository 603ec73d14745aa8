/** `fermata trace`: how an answer of a running server came about. */

import type { Trace } from "../client/types.ts";
import { askServer, serverOptions } from "./ask-server.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { inGroup } from "./option-table.ts";
import { traceList, traceText } from "./trace-text.ts";

const traceOptions = inGroup("Trace", {
  ...serverOptions("Trace"),
  json: { kind: "boolean", default: false, help: "Print the traces as JSON." },
});

export const traceCommand: Command = {
  name: "trace",
  summary: "Show how an answer came about: its phases, its calls, and the rows that were computed.",
  usage: "trace [ID] [options]",
  operands: { min: 0, max: 1 },
  options: traceOptions,
  examples: `  The last answers, the newest last:
    fermata trace
  One of them, by the id of a response, completion, message, run or request:
    fermata trace resp_0123
  Of a server elsewhere, for a script:
    fermata trace resp_0123 --url http://host:8000 --api-key KEY --json
`,
  notes: `The server keeps the traces of the last 64 answers of each key. A key needs the scope "admin", and
sees its own answers. A trace has no text of messages, arguments or results.
`,
  run: runTrace,
};

/** @throws FermataError endpoint_failed */
async function runTrace(args: ParsedArguments, context: CommandContext): Promise<number> {
  const [id] = args.operands;
  const isJson = args.values.get("json") === true;
  if (id !== undefined) {
    const path = `/api/traces/${encodeURIComponent(id)}`;
    const trace = (await askServer(path, args, context)) as Trace;
    context.out(isJson ? `${JSON.stringify(trace, null, 2)}\n` : traceText(trace));
    return 0;
  }
  const { traces } = (await askServer("/api/traces", args, context)) as { traces: Trace[] };
  if (isJson) context.out(`${JSON.stringify(traces, null, 2)}\n`);
  else if (traces.length > 0) context.out(traceList(traces.toReversed()));
  else context.err("Nothing was answered yet.\n");
  return 0;
}
