import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const own = fileURLToPath(new URL("../clients/.venv/bin/python", import.meta.url));

/** A Python that has the module: of the environment that test/clients makes, or of the machine. */
export function pythonWith(module: string): string | undefined {
  return [own, "python3"].find((program) => {
    try {
      execFileSync(program, ["-c", `import ${module}`], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
}
