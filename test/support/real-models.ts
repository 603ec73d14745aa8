/** The models that `npm run test:real` has fetched. */

type RealModel = "smollm2" | "qwen2.5-coder" | "gemma3";

/** Its path, or undefined where the run did not choose it: `describe.skipIf(path === undefined)`. */
export function realModelPath(name: RealModel): string | undefined {
  const paths = JSON.parse(process.env["FERMATA_REAL_MODELS"] ?? "{}") as Record<string, string>;
  return paths[name];
}
