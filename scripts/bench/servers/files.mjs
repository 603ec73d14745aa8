import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fermata } from "./contestants.mjs";

const diskMiB = "8192";

/** Fermata with files behind memory, in a folder that is deleted when it stops. */
export function withFiles(label, flags) {
  const shown = [...flags, "--cache-disk", diskMiB];
  return {
    ...fermata(label, shown),
    start: async (context) => {
      const folder = mkdtempSync(join(tmpdir(), "fermata-bench-"));
      const own = fermata(label, [...shown, "--cache-dir", folder]);
      const remove = () => rmSync(folder, { recursive: true, force: true });
      try {
        const server = await own.start(context);
        return { ...server, stop: () => server.stop().finally(remove) };
      } catch (error) {
        remove();
        throw error;
      }
    },
  };
}
