/** What `fermata doctor` finds of the native build: whether it is there and uses what the machine has. */

import { missingDevice } from "../../engine/missing-device.ts";
import { addonPath, canBuild, loadAddon } from "../../native/addon.ts";
import type { NativeAddon, NativeBackend, NativeDevice } from "../../native/addon-types.ts";
import { type Finding, findingOf } from "./examine-files.ts";
import type { Machine } from "./machine.ts";

export interface Build {
  addon: string;
  /** llama.cpp's own words. */
  system: string;
  backend: NativeBackend;
  devices: NativeDevice[];
  /** What it was compiled to use. */
  features: string[];
}

export function examineBuild(machine: Machine, findings: Finding[]): Build | null {
  let addon: NativeAddon;
  try {
    addon = loadAddon();
  } catch (error) {
    findings.push(findingOf(error, canBuild ? "npm run setup" : "install Fermata again"));
    return null;
  }
  const { systemInfo: system, backend } = addon;
  const features = [...system.matchAll(/(\w+) = 1/g)].map((match) => match[1]!);
  findings.push(...unusedFindings(machine, { features, backend }, canBuild));
  const missing = missingDevice(addon);
  if (missing !== null) findings.push({ level: "warning", ...missing });
  return { addon: addonPath(), system, backend, devices: addon.devices(), features };
}

/** What the machine has and the build does not use. Packages have no scripts, so their remedy starts with a clone. */
export function unusedFindings(
  { features, gpus }: Pick<Machine, "features" | "gpus">,
  build: Pick<Build, "features" | "backend">,
  isClone: boolean,
): Finding[] {
  const findings: Finding[] = [];
  const unused = (features ?? []).filter(
    (name) => !build.features.includes(name) && name !== "SSE3",
  );
  if (unused.some((name) => /^(AVX|AMX|FMA|DOTPROD|SVE)/.test(name))) {
    findings.push({
      level: "warning",
      what: `the CPU has ${unused.join(", ")} and the build does not use it`,
      remedy: isClone
        ? "build on this machine, without FERMATA_PORTABLE: npm run setup"
        : "to use it, run npm start in a clone of Fermata: it builds for this CPU",
    });
  }
  if (gpus.length > 0 && build.backend === "cpu") {
    findings.push({
      level: "warning",
      what: `there is a GPU (${gpus.join(", ")}), and the build only uses the CPU`,
      remedy: `${isClone ? "" : "in a clone of Fermata: "}npm run setup -- --backend cuda (or metal, vulkan)`,
    });
  }
  return findings;
}
