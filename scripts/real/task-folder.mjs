// The folder that the tasks are about, made anew before each task: no task sees what another did.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const taskFolder = join(tmpdir(), "fermata-tasks");
export const memoryFile = join(taskFolder, "memory.jsonl");

const entity = (name, entityType, ...observations) =>
  JSON.stringify({ type: "entity", name, entityType, observations });

const files = {
  "shopping.txt": "apples\npears\nplums\nbread\nmilk\n",
  "prices.csv": "item,price\napples,3.20\npears,2.80\nbread,1.90\n",
  "config.json": '{\n  "host": "localhost",\n  "port": 8123,\n  "debug": false\n}\n',
  "report.txt": "Annual report 2025\nRevenue: 48200 euros\nCosts: 31700 euros\nEmployees: 12\n",
  "server.log":
    "08:00 INFO started\n08:05 ERROR disk full\n08:06 INFO cleaned\n08:10 ERROR no network\n08:12 INFO network back\n08:20 ERROR timeout\n08:30 INFO shutdown\n",
  "poem.txt":
    "The Tyger, by William Blake\n\nTyger Tyger, burning bright,\nIn the forests of the night;\n",
  "draft.txt": "A first draft.\n",
  "notes/meeting.md":
    "# Meeting\n\nTuesday, 14:30\nPresent: Ana, Boris, Chloe\nDecision: ship version 2.4\n",
  "notes/todo.md":
    "- [ ] call the bank\n- [x] buy stamps\n- [ ] water the plants\n- [ ] book a train\n- [x] pay the rent\n",
  "src/main.py": "from util import add\n\nprint(add(20, 22))\n",
  "src/util.py": "def add(a, b):\n    return a + b\n",
  "memory.jsonl": [
    entity("Boris", "person", "works at Globex", "likes chess"),
    entity("Chloe", "person", "works at Initech", "plays the violin"),
  ].join("\n"),
};

export function makeTaskFolder() {
  rmSync(taskFolder, { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) {
    const path = join(taskFolder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** A file's text; "" where there is none. */
export function textOf(name) {
  try {
    return readFileSync(join(taskFolder, name), "utf8");
  } catch {
    return "";
  }
}
