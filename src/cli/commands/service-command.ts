/** `fermata service`: Fermata as a systemd service of this user, without root. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { invalidOption } from "../../errors.ts";
import { didYouMean } from "../../near-names.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { mainProgram, userFolder } from "../folders.ts";
import { inGroup } from "../options/option-table.ts";
import { mergeLayers } from "../options/option-values.ts";
import { serveOptions } from "../options/serve-options.ts";

const actions = ["install", "uninstall", "status"];
const unitName = "fermata.service";

const options = inGroup("Service", {
  config: {
    ...serveOptions.config,
    help: "install: file with the options of the server. Default: fermata.json in ~/.config/fermata, made if it is not there.",
  },
  start: {
    kind: "boolean",
    default: true,
    help: "install: start it now, and at each login. --no-start only writes the files.",
  },
});

export const serviceCommand: Command = {
  name: "service",
  summary: "Serve in the background, as a systemd service of this user.",
  usage: "service install|uninstall|status",
  operands: { min: 1, max: 1, choices: actions },
  options,
  examples: `  Serve now and at each login, with the options of ~/.config/fermata/fermata.json:
    fermata service install
  With the options of another file:
    fermata service install --config ~/models/fermata.json
  Does it run, and what did it log last?
    fermata service status
  After a change of the options:
    systemctl --user restart fermata
`,
  notes: `install writes a unit to ~/.config/systemd/user; uninstall removes it and nothing else. Secrets such
as FERMATA_API_KEY=... belong into ~/.config/fermata/environment. "loginctl enable-linger" lets the
service run without a login. packaging/fermata.service is a unit for the whole machine.
`,
  run: runService,
};

/** Resolves to the exit code. @throws FermataError invalid_option */
async function runService(
  { values, operands }: ParsedArguments,
  { env, out }: CommandContext,
): Promise<number> {
  if (process.platform !== "linux")
    throw invalidOption("fermata service needs systemd, which is on Linux only.", "service");
  const [action] = operands as [string];
  const { config, start } = mergeLayers(options, [values]);
  const unit = join(dirname(userFolder("config", env)), "systemd", "user", unitName);
  switch (action) {
    case "install": {
      const file = config ?? join(userFolder("config", env), "fermata.json");
      if (config === undefined) makeConfig(file);
      else if (!existsSync(file)) throw invalidOption(`There is no ${file}.`, "config");
      mkdirSync(dirname(unit), { recursive: true });
      writeFileSync(unit, unitText(file, env));
      out(`${unit}\nOptions: ${file}\n`);
      if (start) {
        systemctl(["daemon-reload"], env);
        systemctl(["enable", unitName], env);
        // One that runs already is to read the new unit.
        systemctl(["restart", unitName], env);
      }
      return 0;
    }
    case "uninstall":
      if (!existsSync(unit)) throw invalidOption(`There is no ${unit}.`, "service");
      systemctl(["disable", "--now", unitName], env);
      rmSync(unit);
      systemctl(["daemon-reload"], env);
      out(`${unit} is removed. Options, models and the store stay.\n`);
      return 0;
    case "status":
      return (
        spawnSync("systemctl", ["--user", "--no-pager", "status", unitName], {
          env,
          stdio: "inherit",
        }).status ?? 1
      );
    default:
      throw invalidOption(`There is no service ${action}.${didYouMean(action, actions)}`, action);
  }
}

/** It may hold keys. */
function makeConfig(file: string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "{}\n", { mode: 0o600 });
}

/** @throws FermataError invalid_option: systemd does not run for this user, or refuses */
function systemctl(args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stderr, error } = spawnSync("systemctl", ["--user", ...args], {
    env,
    encoding: "utf8",
  });
  if (status === 0) return;
  const why = error?.message ?? stderr.trim();
  throw invalidOption(`systemctl --user ${args.join(" ")} failed: ${why}`, "service");
}

/** The PATH of now: MCP servers are started by name, and systemd's own PATH lacks what a user installed. */
function unitText(config: string, env: NodeJS.ProcessEnv): string {
  const command = [process.execPath, mainProgram, "serve", "--config", config];
  return `# Written by "fermata service install".
[Unit]
Description=Fermata, an inference engine for tool-calling agents
After=network.target

[Service]
Type=notify
# systemd-notify sends for the supervisor.
NotifyAccess=all
Environment=${quoted(`PATH=${env["PATH"] ?? ""}`)}
EnvironmentFile=-${join(userFolder("config", env), "environment").replaceAll("%", "%%")}
ExecStart=${command.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}
# Opens the audit log again.
ExecReload=/bin/kill -HUP $MAINPID
# SIGTERM goes to the supervisor, which lets answers end; after the time-out everything is killed.
KillMode=mixed
TimeoutStopSec=120
# A model may take minutes to load.
TimeoutStartSec=15min
WatchdogSec=60
Restart=on-failure

[Install]
WantedBy=default.target
`;
}

/** A word as systemd reads it. */
function quoted(word: string): string {
  const escaped = word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%");
  return `"${escaped.replaceAll("\n", "\\n")}"`;
}
