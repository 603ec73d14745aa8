/** `fermata rpc-server`: this machine's devices for a model that another machine serves. */

import { isIPv4 } from "node:net";
import { setImmediate } from "node:timers/promises";
import { invalidOption } from "../../errors.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { inGroup } from "../options/option-table.ts";
import { ownOptions } from "../options/option-values.ts";

const mib = 2 ** 20;

const options = inGroup("RPC", {
  host: {
    kind: "string",
    default: "127.0.0.1",
    value: "ADDRESS",
    help: "IPv4 address to listen on. One that other machines reach needs --trusted-network.",
  },
  port: {
    kind: "integer",
    min: 1,
    max: 65_535,
    default: 50_052,
    value: "PORT",
    help: "Port to listen on.",
  },
  threads: {
    kind: "integer",
    min: 1,
    max: 512,
    value: "N",
    help: "CPU threads. Default: the physical cores.",
  },
  mem: {
    kind: "integer",
    min: 1,
    max: 2 ** 24,
    value: "MIB",
    help: "Memory that layers and their cache may take. Default: what is free at the start. Without a GPU only: a GPU gives what it has.",
  },
  trustedNetwork: {
    kind: "boolean",
    default: false,
    help: "Listen where other machines reach it. The protocol has no key and no encryption: each of them may read and change all that this process may.",
  },
});

export const rpcServerCommand: Command = {
  name: "rpc-server",
  summary: "Lend this machine's memory and processors to a model that another machine serves.",
  usage: "rpc-server [options]",
  operands: { min: 0, max: 0 },
  options,
  examples: `  On the machine that lends, in a network where you trust every machine:
    fermata rpc-server --host 192.168.1.20 --trusted-network
  On the machine that serves:
    fermata serve --model large.gguf --rpc 192.168.1.20:50052
  Over a network that you do not trust, through SSH:
    ssh -N -L 50052:127.0.0.1:50052 user@192.168.1.20
    fermata serve --model large.gguf --rpc 127.0.0.1:50052
`,
  notes: `It speaks llama.cpp's RPC protocol, which has no key, no encryption and no protection against a
malicious peer. It serves one program at a time; the same version of Fermata must run on both
machines. SIGINT and SIGTERM end it.
`,
  run: runRpcServer,
};

/** Does not return while it serves. @throws FermataError invalid_option | port_in_use */
async function runRpcServer({ values }: ParsedArguments, context: CommandContext): Promise<number> {
  const given = ownOptions(options, values, context);
  const host = given.host === "localhost" ? "127.0.0.1" : given.host;
  if (!isIPv4(host))
    throw invalidOption(
      `--host needs an IPv4 address, not "${host}": the protocol has no other.`,
      "host",
    );
  const isOpen = !host.startsWith("127.");
  if (isOpen && !given.trustedNetwork)
    throw invalidOption(
      `--host ${host} is reached by other machines, and the protocol has no key: each of them may read and change all that this process may. Give --trusted-network if you trust all of them, or listen on 127.0.0.1 and use an SSH tunnel.`,
      "host",
    );
  const { assertPortFree } = await import("../port.ts");
  await assertPortFree(given.port, host);
  const { loadAddon } = await import("../../native/addon.ts");
  const { callNative } = await import("../../engine/native-errors.ts");
  const { physicalCores } = await import("../../engine/options.ts");
  const addon = loadAddon();
  const devices = addon.devices();
  if (devices.length > 0 && given.mem !== undefined)
    throw invalidOption(
      `--mem is for machines without a GPU; this one lends ${devices.map(({ name }) => name).join(", ")}.`,
      "mem",
    );
  const memoryBytes = given.mem === undefined ? process.availableMemory() : given.mem * mib;
  context.err(
    isOpen
      ? `WARNING: every machine that reaches ${host}:${given.port} may read and change all that this process may.\n`
      : `Only programs of this machine reach ${host}:${given.port}; those may read and change all that this process may.\n`,
  );
  // What was printed leaves before the call that does not return.
  await setImmediate();
  return callNative(() =>
    addon.runRpcServer({
      host,
      port: given.port,
      threads: given.threads ?? physicalCores(),
      memoryBytes,
    }),
  );
}
