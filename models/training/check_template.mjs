// Renders dialogues with @huggingface/jinja and prints the texts, for evaluate.py --tokens.
// Usage: node check_template.mjs TEMPLATE < dialogues.jsonl; each line {"messages", "tools", "prompt": bool}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "package.json"));
const { Template } = await import(pathToFileURL(require.resolve("@huggingface/jinja")).href);
const template = new Template(readFileSync(process.argv[2], "utf8"));

for await (const line of createInterface({ input: process.stdin })) {
  const { messages, tools, prompt } = JSON.parse(line);
  const text = template.render({
    messages,
    tools: tools?.length ? tools : undefined,
    add_generation_prompt: prompt,
  });
  process.stdout.write(JSON.stringify(text) + "\n");
}
