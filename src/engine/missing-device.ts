/** A build that computes on devices, on a machine where it finds none. */

import type { NativeAddon, NativeBackend } from "../native/addon-types.ts";

export interface MissingDevice {
  /** "this build computes on CUDA and finds no device: …" */
  what: string;
  remedy: string;
}

const names: Record<NativeBackend, string> = {
  cpu: "CPU",
  cuda: "CUDA",
  metal: "Metal",
  vulkan: "Vulkan",
};

const remedies: Record<Exclude<NativeBackend, "cpu">, string> = {
  cuda: "install NVIDIA's driver until nvidia-smi lists the GPU, and start a container with --gpus all",
  metal: "run it on the Mac itself, outside of a virtual machine",
  vulkan:
    "install the GPU's Vulkan driver until vulkaninfo --summary lists it; a software driver is used only if you choose it: GGML_VK_VISIBLE_DEVICES=0",
};

/** Null: there is a device, or the build knows none. */
export function missingDevice({
  backend,
  devices,
  deviceProblem,
}: Pick<NativeAddon, "backend" | "devices" | "deviceProblem">): MissingDevice | null {
  if (backend === "cpu" || devices().length > 0) return null;
  const why = deviceProblem === "" ? "" : ` (${deviceProblem})`;
  return {
    what: `this build computes on ${names[backend]} and finds no device${why}: the CPU does all`,
    remedy: remedies[backend],
  };
}
