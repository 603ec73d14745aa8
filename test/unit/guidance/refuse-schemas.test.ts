import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FermataError } from "../../../src/errors.ts";
import { type SchemaUse, guidedSchemas } from "../../../src/guidance/refuse-schemas.ts";
import { compileSchema } from "../../../src/guidance/schema/compile.ts";
import { type CompileJob, compileJob, failed } from "../../../src/guidance/schema-jobs.ts";
import { SchemaThread } from "../../../src/guidance/schema-thread.ts";
import { many, slowSchemas } from "../../support/attacks.ts";

const options = {
  closed: false,
  objectOnly: false,
};

function use(schema: unknown, more: Partial<SchemaUse> = {}): SchemaUse {
  return { schema, options, subject: "The schema of x", field: "tools", strict: false, ...more };
}

function compile(schema: unknown): CompileJob {
  return { type: "compile", text: JSON.stringify(schema), options };
}

/** Too much text to be compiled on the spot. */
function large(seed: number): Record<string, unknown> {
  const properties = many(400, (index) => [`p${index}`, { type: "string", maxLength: seed + 1 }]);
  return {
    type: "object",
    description: "d".repeat(20_000),
    properties: Object.fromEntries(properties),
  };
}

describe("a large schema", () => {
  test("compiles to the same on the thread, once", async () => {
    const [first] = await guidedSchemas([use(large(1))]);
    expect(first?.schema).toEqual(compileSchema(large(1), options).schema);
    const [again] = await guidedSchemas([use(large(1))]);
    expect(again).toBe(first);
  });

  test("leaves the JavaScript thread free", async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 0);
    await guidedSchemas([use(large(2))]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });
});

test("others have their turn while many schemas are read", async () => {
  const uses = Array.from({ length: 400 }, () => use({ type: "object", title: "one of many" }));
  await guidedSchemas(uses);
  // Each look at the clock takes a millisecond, so that the number of pauses does not depend on the machine.
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  await guidedSchemas(uses);
  isOver = true;
  clock.mockRestore();
  expect(turns).toBeGreaterThan(40);
});

test("what is small is compiled in its order, kept, and refused by name", async () => {
  const wrong = use({ properties: 1 }, { subject: 'The parameters of the tool "b"' });
  const never = use({ type: "object", allOf: [{ type: "string" }] }, { subject: "Tool c" });
  const fine = use({ type: "string" });
  const [one, other] = await guidedSchemas([fine, wrong]);
  expect(one?.schema).toEqual({ type: "string" });
  expect(other?.issues).toHaveLength(1);
  await expect(guidedSchemas([fine, { ...wrong, strict: true }, never])).rejects.toMatchObject({
    code: "unsupported_schema",
    param: "tools",
    message: expect.stringMatching(/^The parameters of the tool "b": At #/u),
  });
  await expect(guidedSchemas([fine, never])).rejects.toMatchObject({
    code: "invalid_schema",
    message: expect.stringMatching(/^Tool c: /u),
  });
});

test("of schemas that nobody sends again, only so many are kept", async () => {
  const one = (index: number) => use({ const: `kept ${index}` });
  const [first] = await guidedSchemas([one(0)]);
  for (let start = 1; start < 4097; start += 64)
    await guidedSchemas(Array.from({ length: 64 }, (_, index) => one(start + index)));
  const [again] = await guidedSchemas([one(0)]);
  expect(again).not.toBe(first);
  expect(await guidedSchemas([one(0)])).toEqual([again]);
  expect((await guidedSchemas([one(0)]))[0]).toBe(again);
});

test("what is nested deeper than the stack is refused", async () => {
  let schema: unknown = {};
  for (let level = 0; level < 100_000; level++) schema = { not: schema };
  await expect(guidedSchemas([use(schema)])).rejects.toMatchObject({ code: "schema_too_large" });
});

test("what the masks leave open is validated by the original", async () => {
  const [schema] = await guidedSchemas([use({ type: "string", not: { pattern: "^x" } })]);
  expect(await schema?.validate('"yes"')).toBeNull();
  expect((await schema?.validate('"x"'))?.problem).toBe("/ must NOT be valid");
  expect((await schema?.validate('"x'))?.problem).toBe("is not valid JSON");
  const far = await schema?.validate('{"a/b":[1,-4e444],"c":4e444}');
  expect(far).toEqual({ problem: "/a~1b/1 is a number beyond 1.8e308", isCertain: true });
});

test("a null where the schema has none may be left out where the property may", async () => {
  const integer = { type: "integer" };
  const [schema] = await guidedSchemas([
    use({
      type: "object",
      properties: {
        a: integer,
        "b/c": { type: "object", properties: { d: integer } },
        list: { type: "array", items: integer },
        open: { type: ["integer", "null"] },
      },
      required: ["a"],
    }),
  ]);
  const without = async (value: object): Promise<string | undefined> =>
    (await schema?.validate(JSON.stringify(value)))?.withoutNulls;
  expect(await without({ a: 1, "b/c": { d: null, e: null }, open: null })).toBe(
    '{"a":1,"b/c":{"e":null},"open":null}',
  );
  expect(await without({ a: 1, "b/c": null, list: null })).toBe('{"a":1}');
  expect(await without({ a: null })).toBeUndefined();
  expect(await without({ a: 1, list: [null] })).toBeUndefined();
  expect(await without({ a: "1", list: null })).toBeUndefined();
  expect(await without({ a: 1, open: null })).toBeUndefined();
});

describe("what a busy machine does not work out in time", () => {
  /** None of the schemas that are compiled on the thread next is. */
  function beBusy(): void {
    const run = vi.spyOn(SchemaThread.prototype, "run");
    onTestFinished(() => run.mockRestore());
    run.mockImplementationOnce(async (jobs) =>
      jobs.map(() => failed("schema_timeout", "The schema takes more than 1 s.")),
    );
  }

  test("is left open, told and validated, and enforced the next time", async () => {
    beBusy();
    const [open] = await guidedSchemas([use(large(4))]);
    expect(open).toMatchObject({ schema: {}, isTimedOut: true });
    expect(open?.issues).toEqual([
      expect.objectContaining({ path: "#", reason: "was not worked out in time" }),
    ]);
    expect((await open?.validate('{"p0":"abcdefgh"}'))?.place).toBe("/p0");
    const [enforced] = await guidedSchemas([use(large(4))]);
    expect(enforced).toMatchObject({ issues: [], isTimedOut: false });
    const [again] = await guidedSchemas([use(large(4))]);
    expect(again).toBe(enforced);
  });

  test("leaves a tool's arguments an object", async () => {
    beBusy();
    const [open] = await guidedSchemas([
      use(large(5), { options: { closed: true, objectOnly: true } }),
    ]);
    expect(open?.schema).toEqual({ type: "object", additionalProperties: {} });
  });

  test("is an error where it must be enforced, which says that it is the time", async () => {
    beBusy();
    await expect(guidedSchemas([use(large(6), { strict: true })])).rejects.toMatchObject({
      code: "schema_timeout",
      status: 503,
      param: "tools",
      message: expect.stringMatching(/in time.*Try again.*strict: false/u),
    });
    expect(await guidedSchemas([use(large(6), { strict: true })])).toHaveLength(1);
  });

  test("is left open where too many wait, too", async () => {
    const run = vi.spyOn(SchemaThread.prototype, "run");
    onTestFinished(() => run.mockRestore());
    const full = new FermataError("queue_full", "Too many.");
    run.mockRejectedValueOnce(full).mockRejectedValueOnce(full);
    const [open] = await guidedSchemas([use(large(7))]);
    expect(open?.isTimedOut).toBe(true);
    const strict = guidedSchemas([use(large(7), { strict: true })]);
    await expect(strict).rejects.toMatchObject({ code: "schema_timeout" });
  });

  test("takes nothing from the schemas before it", async () => {
    const run = vi.spyOn(SchemaThread.prototype, "run");
    onTestFinished(() => run.mockRestore());
    run.mockImplementationOnce(async ([first, second]) => [
      compileJob(first as CompileJob),
      compileJob(second as CompileJob),
      failed("schema_timeout", "The schema takes more than 1 s."),
    ]);
    const uses = [use(large(8)), use(large(9), { strict: true }), use(large(10))];
    const [first, second, open] = await guidedSchemas(uses);
    expect([first?.issues, second?.issues]).toEqual([[], []]);
    expect(open?.isTimedOut).toBe(true);
    const again = await guidedSchemas(uses);
    expect(again.slice(0, 2)).toEqual([first, second]);
    expect(again[2]?.issues).toEqual([]);
    expect(run.mock.lastCall?.[0]).toHaveLength(1);
  });
});

describe("the thread", () => {
  const job = compile(large(3));
  const nothing = compile(1);
  const timedOut = { error: expect.objectContaining({ code: "schema_timeout" }) };
  const compiled = { compiled: expect.objectContaining({ issues: [] }) };

  test("is ended when a request's schemas take too long, and begins anew", async () => {
    const ran = [0, 999, 1000];
    const thread = new SchemaThread(1000, () => ({ ran: ran.shift() ?? 0, waited: 0 }));
    const slow = compile(slowSchemas.at(-1)![1]);
    expect(await thread.run([slow, job])).toEqual([timedOut, timedOut]);
    expect(await thread.run([job, job])).toEqual([compiled, compiled]);
  });

  test("may wait for a processor as long as others have them", async () => {
    // An hour passes between two looks.
    let now = 0;
    const wall = vi.spyOn(performance, "now").mockImplementation(() => now);
    onTestFinished(() => wall.mockRestore());
    const starved = new SchemaThread(1000, () => ({ ran: 0, waited: (now += 3.6e6) }));
    expect(await starved.run([job])).toEqual([compiled]);
    const stopped = new SchemaThread(1000, () => {
      now += 3.6e6;
      return { ran: 0, waited: 0 };
    });
    expect(await stopped.run([job])).toEqual([timedOut]);
  });

  test("a schema that is none fails alone", async () => {
    const thread = new SchemaThread(1000);
    const [failing, whole] = await Promise.all([thread.run([nothing, job]), thread.run([job])]);
    expect(failing).toEqual([
      { error: expect.objectContaining({ code: "invalid_schema" }) },
      { compiled: expect.objectContaining({ issues: [] }) },
    ]);
    expect(whole).toEqual([{ compiled: expect.objectContaining({ issues: [] }) }]);
  });

  test("refuses when too many wait", async () => {
    const thread = new SchemaThread(1000);
    const results = await Promise.allSettled(many(34, () => thread.run([nothing])));
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(2);
    expect(refused[0]).toMatchObject({ reason: { code: "queue_full" } });
  });
});
