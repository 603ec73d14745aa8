/** `fermata doctor`: what `examine` found, for people or as JSON. */

import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { configOf } from "../options/config.ts";
import { chatLine } from "../banner.ts";
import { withCachedModel } from "../pull/pull.ts";
import { bytesText } from "../progress.ts";
import { type Diagnosis, examine } from "./examine.ts";
import type { Build } from "./examine-build.ts";

/** Resolves to 0 if serving would work, else to 1. @throws FermataError */
export async function runDoctor(
  { values }: ParsedArguments,
  { env, cwd, out }: CommandContext,
): Promise<number> {
  const config = withCachedModel(configOf(values, env, cwd), { env, cwd });
  const diagnosis = await examine(config, { flags: values, env, cwd });
  out(values.get("json") === true ? `${JSON.stringify(diagnosis, null, 2)}\n` : report(diagnosis));
  return diagnosis.findings.some(({ level }) => level === "error") ? 1 : 0;
}

function buildText({ system, backend, devices }: Build): string {
  const [version] = system.split(" | ");
  if (backend === "cpu") return `${version}, for the CPU`;
  const found = devices.map(
    ({ name, description, freeBytes, totalBytes }) =>
      `${name} (${description}, ${bytesText(freeBytes)} free of ${bytesText(totalBytes)})`,
  );
  return `${version}, for ${backend}: ${found.join("; ") || "no device"}`;
}

function report({
  fermata,
  machine,
  build,
  model,
  chat,
  largestParameters,
  settings,
  findings,
}: Diagnosis): string {
  const lines = [
    `Fermata   ${fermata}, Node.js ${machine.node}, ${machine.platform}`,
    `CPU       ${machine.cpu}, ${machine.cores} cores, ${machine.threads} threads`,
    ...(machine.features === null ? [] : [`          ${machine.features.join(", ")}`]),
    `Memory    ${bytesText(machine.availableBytes)} available of ${bytesText(machine.memoryBytes)}`,
    `GPU       ${machine.gpus.join("; ") || "none found"}`,
    `Build     ${build === null ? "missing" : buildText(build)}`,
    ...(build === null ? [] : [`          uses ${build.features.join(", ")}`]),
    `Fits      models of up to about ${(largestParameters / 1e9).toFixed(0)} B parameters in Q4_K_M`,
  ];
  if (model !== null) {
    lines.push(
      `Model     ${model.path} (${model.architecture})`,
      `          ${bytesText(model.weightBytes)} of weights + ${bytesText(model.cacheBytes)} of KV cache + ${bytesText(model.computeBytes)} of buffers: ${bytesText(model.neededBytes)} of this machine's memory`,
      `          ${bytesText(model.conversationBytes)} of the cache for a conversation of ${model.resolved.contextSize} tokens, in a slot, in memory or in a file`,
      ...model.devices.map(
        ({ name, weights, cache, compute }) =>
          `          ${bytesText(weights + cache + compute)} of ${name}`,
      ),
    );
  }
  if (chat !== null) {
    lines.push(chatLine(chat));
  }
  lines.push("", "Settings");
  for (const { option, value, from, why } of settings)
    lines.push(`  ${option.padEnd(18)} ${value.padEnd(10)} ${from.padEnd(12)} ${why}`);
  lines.push("", findings.length === 0 ? "Nothing is wrong." : "To do");
  for (const { level, what, remedy } of findings)
    lines.push(`  ${level}: ${what}.`, `    -> ${remedy}`);
  return `${lines.join("\n")}\n`;
}
