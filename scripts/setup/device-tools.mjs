import { findCudaTools } from "./cuda-tools.mjs";
import { findVulkanTools } from "./vulkan-tools.mjs";

const finders = { cuda: findCudaTools, vulkan: findVulkanTools };

/** What a backend's build needs beside the compiler, as options for cmake-js. @throws SetupError */
export async function findDeviceTools(options) {
  return (await finders[options.backend]?.(options)) ?? [];
}
