import { SetupError } from "./report.mjs";

const backends = ["cpu", "cuda", "metal", "vulkan"];

/**
 * Takes --backend and --fetch-tools out of `args`; what is left belongs to the caller. `fetchTools`: what the
 * backend's build needs may be fetched.
 */
export function takeSetupOptions(args) {
  const rest = [];
  let fetchTools = false;
  let backend = process.env.FERMATA_BACKEND ?? (process.platform === "darwin" ? "metal" : "cpu");
  for (let index = 0; index < args.length; index++) {
    const [name, inline] = args[index].split("=", 2);
    if (name === "--backend") backend = inline ?? args[++index] ?? "";
    else if (args[index] === "--fetch-tools") fetchTools = true;
    else rest.push(args[index]);
  }
  if (!backends.includes(backend)) {
    throw new SetupError(`--backend must be one of ${backends.join(", ")}; it is "${backend}".`);
  }
  const portable = process.env.FERMATA_PORTABLE === "1";
  return { options: { backend, portable, fetchTools }, rest };
}
