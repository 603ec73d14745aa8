import { readFileSync } from "node:fs";

const compact = { whitespace_flexible: false };

function larkOf(schema) {
  const document = typeof schema === "object" ? { ...schema, "x-guidance": compact } : schema;
  return `start: %json ${JSON.stringify(document)}`;
}

/** Walks `instances` through the masks of one grammar. undefined: it does not compile. */
async function walk(engine, source, instances) {
  let grammar;
  try {
    grammar = await engine.compileGrammar(source);
  } catch {
    return undefined;
  }
  const times = { masks: [], firstMask: undefined };
  for (const text of instances) {
    const { maskMicroseconds } = grammar.check(await engine.tokenize(text));
    times.firstMask ??= grammar.compileMicroseconds + maskMicroseconds[0];
    times.masks.push(...maskMicroseconds);
  }
  return times;
}

async function walkAll(engine, entries) {
  const all = { compiled: 0, tried: entries.length, masks: [], firstMasks: [] };
  for (const { source, instances } of entries) {
    const times = await walk(engine, source, instances);
    if (!times) continue;
    all.compiled += 1;
    all.masks.push(...times.masks);
    if (times.firstMask !== undefined) all.firstMasks.push(times.firstMask);
  }
  return all;
}

/**
 * The time of each mask on one thread, in microseconds, of llguidance and of llama.cpp's GBNF.
 * `load.corpus` is a file of { schema, gbnf, instances }; GBNF walks every `load.gbnfStride`th.
 */
export async function measureMaskTimes(Engine, options, { corpus, gbnfStride }) {
  const entries = JSON.parse(readFileSync(corpus, "utf8"));
  const engine = await Engine.load({ ...options, contextSize: 256, parallel: 1 });
  // The vocabulary is described once, with the first grammar.
  await engine.compileGrammar({ kind: "lark", text: 'start: "x"' });
  const lark = await walkAll(
    engine,
    entries.map(({ schema, instances }) => ({
      source: { kind: "lark", text: larkOf(schema) },
      instances,
    })),
  );
  const gbnf = await walkAll(
    engine,
    entries
      .filter((entry, index) => entry.gbnf && index % gbnfStride === 0)
      .map((entry) => ({
        source: { kind: "gbnf", text: entry.gbnf },
        instances: entry.instances.slice(0, 1),
      })),
  );
  await engine.close();
  return { lark, gbnf };
}
