// Turns of a coding agent, by how much of the answer stands in the prompt. Each number gives other
// names and values, so that nobody remembers the answer of an earlier run.
const nouns = ["setting", "invoice", "ticket", "sensor", "parcel", "lesson", "recipe", "voucher"];
const places = ["a lighthouse", "a night train", "a flooded valley", "an old library"];
const nounOf = (number) => nouns[number % nouns.length];

const fileOf = (noun) => `import { readFile, writeFile } from "node:fs/promises";

/** Every ${noun} of a file of lines like "name = value". */
export async function load_${noun}s(path) {
  const text = await readFile(path, "utf8");
  const found = new Map();
  for (const line of text.split("\\n")) {
    const [name, value] = line.split("=");
    if (value === undefined) continue;
    found.set(name.trim(), { kind: "${noun}", value: value.trim() });
  }
  return found;
}

export async function save_${noun}s(path, found) {
  const lines = [...found].map(([name, { value }]) => \`\${name} = \${value}\`);
  await writeFile(path, lines.join("\\n"));
}
`;

const edit = (number) =>
  `Rename load_${nounOf(number)}s to read_${nounOf(number)}s in this file. Answer with the whole file.\n\n${fileOf(nounOf(number))}`;

function form(number) {
  const rows = Array.from({ length: 8 }, (_, row) => {
    const id = `${nounOf(number)}-${number * 131 + row * 17}`;
    return { id, owner: `team-${(number + row) % 5}@example.com`, path: `/data/${id}/report.json` };
  });
  return `A tool gave these rows:\n${JSON.stringify(rows)}\nWrite one line for each: register(id="…", owner="…", path="…")`;
}

const calls = (number) =>
  `You ran:\n${Array.from({ length: 4 }, (_, at) => `run_test({"file": "test/unit/${nounOf(number)}/part-${at}.test.ts", "timeout": 30, "retry": false})`).join("\n")}\nRun the same for part-4 to part-12 too: answer with these calls, one in a line.`;

const prose = (number) =>
  `Write a short story about someone who works in ${places[number % places.length]} and finds a ${nounOf(number)}. No lists.`;

export const kinds = [
  { kind: "edit", agents: 1, prompt: edit },
  { kind: "form from a result", agents: 1, prompt: form },
  { kind: "repeated calls", agents: 1, prompt: calls },
  { kind: "prose", agents: 1, prompt: prose },
  { kind: "edit, 8 agents", agents: 8, prompt: edit },
  { kind: "prose, 8 agents", agents: 8, prompt: prose },
];
