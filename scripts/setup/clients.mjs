// Other people's clients, which only the end-to-end tests need: npm packages of their own lock, and a
// Python environment where this machine can make one.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { installLocked } from "./locked-packages.mjs";
import { root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { capture } from "./run.mjs";
import { hashOf, readStamp, writeStamp } from "./stamp.mjs";

const folder = join(root, "test", "clients");
const pythonDir = join(folder, ".venv");
const pythonStampPath = join(pythonDir, ".fermata-stamp");

const pipInstall = ["-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "20"];

export async function setUpClients() {
  await installLocked(folder, "Installing the clients of the end-to-end tests");
  await installPython();
}

/** Without Python or pip its test is skipped and says so. */
async function installPython() {
  const requirements = join(folder, "requirements.txt");
  const wanted = hashOf([requirements]);
  if (readStamp(pythonStampPath) === wanted) return;
  rmSync(pythonDir, { recursive: true, force: true });
  const python = join(pythonDir, "bin", "python");
  const made = await timed(
    "Installing the Python clients",
    async () =>
      (await succeeds("python3", ["-m", "venv", pythonDir])) &&
      (await succeeds(python, [...pipInstall, "--requirement", requirements])),
  );
  if (made) writeStamp(pythonStampPath, wanted);
  else rmSync(pythonDir, { recursive: true, force: true });
}

async function succeeds(program, args) {
  try {
    return (await capture(program, args)).code === 0;
  } catch {
    // There is no such program.
    return false;
  }
}
