// How much code a request passes: `node scripts/checks/request-path.mjs --list` names the files.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/checks/request-path.mjs", import.meta.url));

/** Files to the addon's submit, and async generators that a token passes on its way back. */
const most = {
  "POST /v1/chat/completions with tools": [45, 2],
  "POST /v1/chat/completions, tools run here": [51, 2],
  "POST /v1/responses, tools run here": [61, 2],
};

test("a request passes few files and few async generators", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  const lines = [...stdout.matchAll(/^(POST .*): (\d+) files .*, (\d+) async generators$/gm)];
  expect(lines.map(([, title]) => title)).toEqual(Object.keys(most));
  for (const [line, title, files, generators] of lines) {
    const [mostFiles, mostGenerators] = most[title as keyof typeof most];
    // Nothing counted would be a fault of the count.
    expect(Number(files), line).toBeGreaterThan(30);
    expect(Number(files), line).toBeLessThanOrEqual(mostFiles!);
    expect(Number(generators), line).toBeLessThanOrEqual(mostGenerators!);
  }
});
