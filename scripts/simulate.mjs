#!/usr/bin/env node
// node scripts/simulate.mjs --help
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { shapes } from "./bench/shapes/shape.mjs";
import { setUp } from "./setup.mjs";
import { takeSetupOptions } from "./setup/options.mjs";
import { root } from "./setup/paths.mjs";
import { SetupError, exitOnSetupError, say } from "./setup/report.mjs";
import { calibrate, writeJson } from "./simulate/calibrate/calibrate.mjs";
import { renderTable, renderValidation, withSection } from "./simulate/report/render.mjs";
import { simulateTable } from "./simulate/table.mjs";
import { validate } from "./simulate/validate/validate.mjs";

const help = `Usage: node scripts/simulate.mjs COMMAND [options]

Simulates 1 to 1,000 replicas of fermata serve behind a proxy. The scheduler is the one that serves.

Commands
  calibrate   measure what steps, moves and requests take on this machine, and the limits of
              Postgres, Redis, disk and HAProxy; 5 minutes, the machine must be quiet
  validate    run one and three real replicas behind HAProxy, calibrate the engine before and after
              each run, and compare with the simulator; 37 minutes, the machine must be quiet
  table       simulate replicas by the calibration

Options
  --calibration FILE  read or written (scripts/simulate/calibration.json)
  --shape NAME        shape of the model for calibrate and validate (135M)
  --runs N            real runs of validate (2)
  --no-calibrate      validate with the calibration as it is
  --replicas LIST     sizes of table (1,3,10,30,100,300,1000)
  --docs              validate, table: write the result into docs/scale.md
  --json FILE         write the results there too
`;

const options = {
  calibration: { type: "string", default: join(root, "scripts/simulate/calibration.json") },
  shape: { type: "string", default: "135M" },
  runs: { type: "string", default: "2" },
  "no-calibrate": { type: "boolean", default: false },
  replicas: { type: "string", default: "1,3,10,30,100,300,1000" },
  docs: { type: "boolean", default: false },
  json: { type: "string" },
  help: { type: "boolean", default: false },
};

function readCalibration(file) {
  if (!existsSync(file)) throw new SetupError(`There is no calibration ${file}. Run calibrate.`);
  const calibration = JSON.parse(readFileSync(file, "utf8"));
  if (Array.isArray(calibration.slowdowns?.chunk?.[0])) return calibration;
  throw new SetupError(`${file} has the form of an earlier version. Run calibrate.`);
}

/** Into docs/scale.md. */
function writeSection(name, text) {
  const page = join(root, "docs/scale.md");
  writeFileSync(page, withSection(readFileSync(page, "utf8"), name, text));
}

function readArguments() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new SetupError(`${error.message} See --help.`);
  }
}

function wholeNumber(name, text, most) {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  throw new SetupError(`${name}: ${text} is not a whole number from 1 to ${most}.`);
}

function shapeNamed(name) {
  if (Object.hasOwn(shapes, name)) return name;
  throw new SetupError(`--shape: ${name} is none of ${Object.keys(shapes).join(", ")}.`);
}

const print = (text) => process.stdout.write(`${text}\n`);

const commands = {
  async calibrate({ calibration, shape }) {
    const measured = await calibrate({ shape: shapeNamed(shape), parts: true, progress: say });
    writeJson(calibration, measured);
    print(JSON.stringify(measured, undefined, 2));
    return measured;
  },
  async validate({ calibration, shape, runs, docs, "no-calibrate": asItIs }) {
    const realRuns = wholeNumber("--runs", runs, 100);
    const given = asItIs ? readCalibration(calibration) : undefined;
    const wanted = { shape: shapeNamed(shape), parts: false, progress: say };
    const calibrated = async () => given ?? (await calibrate(wanted));
    const result = await validate(calibrated, { runs: realRuns, progress: say });
    const text = renderValidation({ ...result, ...result.calibration, busy: result.busy });
    print(text);
    if (docs) writeSection("validated", text);
    return result;
  },
  table({ calibration, replicas, docs }) {
    const sizes = replicas.split(",").map((size) => wholeNumber("--replicas", size, 10_000));
    const result = simulateTable(readCalibration(calibration), sizes, say);
    const table = renderTable(result);
    print(table);
    if (docs) writeSection("simulated", table);
    return result;
  },
};

try {
  const { values, positionals } = readArguments();
  const command = commands[positionals[0]];
  if (values.help) {
    print(help);
  } else if (!command || positionals.length > 1) {
    throw new SetupError(`Name one command: ${Object.keys(commands).join(", ")}. See --help.`);
  } else {
    await setUp(takeSetupOptions([]).options);
    const result = await command(values);
    if (values.json) writeJson(resolve(values.json), result);
  }
} catch (error) {
  exitOnSetupError(error);
}
