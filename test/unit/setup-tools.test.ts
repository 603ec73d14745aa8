// Which programs the setup runs, where there is more than one.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "fermata-setup-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** What an expression with the functions of a setup script comes to. */
function evaluate(script: string, expression: string, env: NodeJS.ProcessEnv): unknown {
  const url = new URL(`../../scripts/setup/${script}`, import.meta.url).href;
  const code = `const setup = await import(${JSON.stringify(url)}); console.log(JSON.stringify(${expression}));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", code], { env });
  return JSON.parse(String(output));
}

/** A folder with a cargo of this version. */
function cargoIn(name: string, version: string): string {
  const directory = join(folder, name);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "cargo"), `#!/bin/sh\necho cargo ${version}\n`, { mode: 0o755 });
  return directory;
}

test("the cargo on PATH comes before others, and one that is installed later is taken", () => {
  cargoIn("home/.cargo/bin", "1.0.0");
  const [first, later] = [cargoIn("first", "999.0.0"), cargoIn("later", "999.1.0")];
  const source = join(folder, "source");
  mkdirSync(source);
  symlinkSync(join(root, "native"), join(source, "native"));
  writeFileSync(
    join(source, "CMakeLists.txt"),
    "cmake_minimum_required(VERSION 3.21)\nproject(cargo NONE)\nset(FERMATA_LLGUIDANCE ON)\n" +
      'include(native/llguidance.cmake)\nmessage(STATUS "${FERMATA_LLGUIDANCE} by ${CARGO}")\n',
  );
  const { CARGO_HOME: _, ...rest } = process.env;
  const environment = (path: string): NodeJS.ProcessEnv => ({
    ...rest,
    HOME: join(folder, "home"),
    PATH: path + delimiter + process.env["PATH"],
  });
  const configure = (env: NodeJS.ProcessEnv, ...options: string[]): string =>
    String(
      execFileSync("cmake", ["-S", source, "-B", join(folder, "build"), ...options], {
        env,
        encoding: "utf8",
      }),
    );
  expect(configure(environment(first))).toContain(`ON by ${first}/cargo`);

  const option = evaluate("toolchain.mjs", "setup.cargoOption()", environment(later));
  expect(option).toBe(`--CDCARGO=${later}/cargo`);
  const passed = String(option).replace("--CD", "-D");
  expect(configure(environment(later), passed)).toContain(`ON by ${later}/cargo`);
});

test.each([
  ["/lib/npm/bin/npm-cli.js", [process.execPath, ["/lib/npm/bin/npm-cli.js", "ci"]]],
  ["/lib/npm/bin/npx-cli.js", [process.execPath, ["/lib/npm/bin/npm-cli.js", "ci"]]],
  ["/lib/yarn/bin/yarn.js", ["npm", ["ci"]]],
])("started by %s", (npm, command) => {
  const env = { ...process.env, npm_execpath: npm };
  expect(evaluate("run.mjs", 'setup.npmCommand(["ci"])', env)).toEqual(command);
});
