/** Templates that would stop the server: each ends at once, with an error that says why. */

import { expect, test } from "vitest";
import { qwen } from "../../../src/chat/formats/formats.ts";
import { ChatTemplate } from "../../../src/chat/template/template.ts";
import { JinjaTemplate } from "../../../src/chat/template/jinja/jinja-template.ts";

const steps = "it takes too many steps";
const text = "it writes too much text";
const doubled = "{% set x = x ~ x %}".repeat(40);
const nested = "{% set x = [x, x] %}".repeat(60);
const shared = `{% set x = [1] %}${nested}`;
const inLists = "{% set x = [x] %}".repeat(60);
const wide = "{% set l = range(5000) | list %}";
const long = "{% set x = 'a' * 100000 %}";
const halves = "{% set x = 'a' * 400000 %}{% set y = 'a' * 200000 %}";
const inLoop = (body: string) =>
  `{% set x = 'a' * 1000000 %}{% for i in range(1000) %}${body}{% endfor %}`;
const loops = "{% for a in range(3000) %}{% for b in range(3000) %}".repeat(2);

const bombs: [string, string, string][] = [
  ["a range", "{{ range(400000000) | length }}", steps],
  ["a range backwards", "{{ range(0, -400000000, -1) | length }}", steps],
  ["a range by nothing", "{{ range(0, 5, 0) | length }}", steps],
  ["loops in loops", `${loops}x{% endfor %}{% endfor %}{% endfor %}{% endfor %}`, steps],
  ["loops without a body", `${loops}{% endfor %}{% endfor %}{% endfor %}{% endfor %}`, steps],
  ["a text times a number", "{{ 'abcdefgh' * 100000000 }}", text],
  ["a text that doubles", `{% set x = 'ab' %}${doubled}{{ x | length }}`, text],
  ["by plus", `{% set x = 'ab' %}${doubled.replaceAll("~", "+")}{{ x | length }}`, text],
  ["a list that doubles", `{% set x = [1, 2] %}${doubled.replaceAll("~", "+")}`, steps],
  ["a list of itself, as text", `{% set x = [1] %}${nested}{{ x }}`, steps],
  ["as text in lower case", `{% set x = [1] %}${nested}{{ x | lower }}`, steps],
  ["told apart", `{% set x = [1] %}${nested}{{ [x] | unique }}`, steps],
  ["as a separator", `{% set x = [1] %}${nested}{{ [1, 2] | join(x) }}`, steps],
  ["put into a pattern", `{% set x = [1] %}${nested}{{ '{}'.format(x) }}`, steps],
  ["joined", `{% set x = [1] %}${nested}{{ ', '.join(x) }}`, steps],
  ["a list of itself, as JSON", `{% set x = [1] %}${nested}{{ x | tojson }}`, steps],
  ["a list of itself, compared", `{% set x = [1] %}${nested}{{ x == x }}`, steps],
  ["replace", "{% set x = 'a' * 100000 %}{{ x.replace('a', x) | length }}", text],
  ["replace, a filter", "{% set x = 'a' * 100000 %}{{ x | replace('a', x) | length }}", text],
  ["join", "{% set x = 'a' * 100000 %}{{ x.join(range(1000)) | length }}", text],
  ["join, a filter", "{% set x = 'a' * 100000 %}{{ range(1000) | join(x) | length }}", text],
  ["a list times a number", "{{ ([1] * 100000000) | length }}", steps],
  ["replace of nothing", "{% set x = 'a' * 100000 %}{{ x.replace('', x) | length }}", text],
  ["indent", "{{ 'a' | indent(1000000000) }}", "indent takes a width of at most 1000"],
  [
    "indent by name",
    "{{ 'a' | indent(width=1000000000) }}",
    "indent takes a width of at most 1000",
  ],
  ["tojson", "{{ [1] | tojson(indent=1000000000) }}", "tojson takes a width of at most 1000"],
  [
    "a text that copies itself in a loop",
    "{% set x = 'a' * 1000000 %}{% for i in range(1000) %}{{ x ~ i }}{% endfor %}",
    text,
  ],
  ["a text that is read in a loop", inLoop("{{ x | upper | length }}"), steps],
  ["slices of a list", `{% set l = range(10000) %}${inLoop("{{ l[0:1] }}")}`, steps],
  ["slices of a text", inLoop("{{ x[0:1] }}"), steps],
  ["texts in a list, as JSON", "{% set x = 'a' * 500000 %}{{ ([x] * 1000) | tojson }}", steps],
  ["margins in margins", `{% set x = [1] * 9000 %}${inLists}{{ x | tojson(indent=1000) }}`, text],
  [
    "separators of JSON",
    "{{ [1, 2] | tojson(separators=['a' * 100000, ':']) }}",
    "tojson takes a width of at most 1000",
  ],
  ["a list as a replacement", `${wide}{{ ('a' * 4000) | replace('a', l) }}`, text],
  ["by name", `${wide}{{ ('a' * 4000) | replace(new=l, old='a') }}`, text],
  ["a list in many places", `${wide}{{ ('{0}' * 4000).format(l) }}`, text],
  ["a text in many places", "{{ ('{a}' * 4000).format(a='a' * 10000) }}", text],
  ["a list as a separator", `${wide}{{ range(4000) | join(l) }}`, text],
  ["replace, called by another name", `${long}{% set m = x.replace %}{{ m('a', x) }}`, text],
  ["a list of itself, of lower case", `${shared}{{ x is lower }}`, steps],
  ["in a namespace", `${shared}{{ namespace(x=x) }}`, steps],
  ["in a namespace, as JSON", `${shared}{{ namespace(x=x) | tojson }}`, steps],
  ["as a refusal", `${shared}{{ raise_exception(x) }}`, "it gives no reason"],
  ["as a number", `${shared}{{ range(x) }}`, "range takes integers"],
  ["strip", `{% set y = 'b' * 100000 ~ 'a' %}${inLoop("{{ x.strip(y) }}")}`, steps],
  [
    "the first of an object",
    inLoop("{{ o | first }}").replace(
      "{% for",
      "{% set o = {} %}{% for j in range(2000) %}{% set _ = o.update({j ~ '': j}) %}{% endfor %}{% for",
    ),
    steps,
  ],
  ["the length of a text", inLoop("{{ x | length }}"), steps],
  ["the list of a text", inLoop("{{ x | list | first }}"), steps],
  ["a text's case", inLoop("{{ x is lower }}"), steps],
  ["digits", inLoop("{{ x.isdigit() }}"), steps],
  ["find", inLoop("{{ x.find('b') }}"), steps],
  ["lines", inLoop("{{ x.splitlines() | length }}"), steps],
  [
    "characters of two texts in turn",
    `{% set y = 'b' * 1000000 %}${inLoop("{{ x[0] }}{{ y[0] }}")}`,
    steps,
  ],
  ["a loop over a text", inLoop("{% for c in x %}{% break %}{% endfor %}"), steps],
  ["an order of texts", inLoop("{{ x < x ~ 'b' }}"), steps],
  ["batch", `{% set l = range(10000) %}${inLoop("{{ l | batch(5000) }}")}`, steps],
  ["max", `{% set l = range(10000) %}${inLoop("{{ l | max }}")}`, steps],
  ["keys of texts", "{% set x = 'a' * 1000000 %}{{ ([x] * 9) | sort | length }}", steps],
  ["namespaces of a namespace", inLoop("{% set n = namespace([['a', 1]] * 9000) %}"), steps],
  ["a long path", "{% set x = 'a.' * 100000 %}{{ range(1000) | map(attribute=x) | list }}", steps],
  ["a part in a text", `${halves}{{ (y ~ 'b') in x }}`, steps],
  ["is it in a text", `${halves}{{ (y ~ 'b') is in x }}`, steps],
  ["where a part is", `${halves}{{ x.rfind(y ~ 'b') }}`, steps],
  ["how often", `${halves}{{ x.count(y ~ 'b') }}`, steps],
  ["split", `${halves}{{ x.split(sep=y ~ 'b') }}`, steps],
  [
    "an object's long keys, as JSON",
    "{% set x = 'a' * 1000000 %}{{ ([{x: 1}] * 3000) | tojson }}",
    steps,
  ],
  ["as text", "{% set x = 'a' * 1000000 %}{{ [{x: 1}] * 3000 }}", steps],
  ["compared", inLoop("{{ o == o }}").replace("{% for", "{% set o = {x: 1} %}{% for"), steps],
  [
    "in an order",
    inLoop("{{ o.dictsort() }}").replace("{% for", "{% set o = {x: 1} %}{% for"),
    steps,
  ],
  [
    "macros in a loop",
    `{% for i in range(1000) %}{% macro f() %}${"{{ a }}".repeat(2000)}{% endmacro %}{% endfor %}`,
    steps,
  ],
  [
    "calls with a block in a loop",
    `{% macro f() %}{% endmacro %}{% for i in range(1000) %}{% call f() %}${"{{ a }}".repeat(2000)}{% endcall %}{% endfor %}`,
    steps,
  ],
  [
    "a list of arguments in a loop",
    "{% macro f() %}{{ varargs[0] }}{% endmacro %}{% set l = [0] * 10000 %}{% for i in range(100) %}{{ f(*l) }}{% endfor %}",
    steps,
  ],
  ["replace of a part", `${halves}{{ x | replace(y ~ 'b', '') }}`, steps],
];

test.each(bombs)("%s", (_, source, problem) => {
  expect(() => new JinjaTemplate(source).render({})).toThrow(problem);
});

test("a bomb that waits for a long conversation", () => {
  const source = "{% if messages | length > 3 %}{{ range(400000000) | length }}{% endif %}ok";
  const template = new JinjaTemplate(source);
  const messages = [{ content: "Hi" }];
  expect(template.render({ messages })).toBe("ok");
  expect(() => template.render({ messages: [1, 2, 3, 4] })).toThrow(steps);
});

test("a conversation that makes the template of a loaded model too dear is refused", () => {
  const model = { specialTokens: [], bosToken: "", eosToken: "" } as never;
  const source =
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if messages | length > 30 %}{{ range(400000000) | length }}{% endif %}";
  const template = new ChatTemplate(source, model, null, qwen);
  const render = (count: number) => {
    const messages = Array.from({ length: count }, () => ({
      role: "user" as const,
      content: "Hi",
    }));
    return template.render(messages, { tools: [] } as never);
  };
  expect(() => render(30)).not.toThrow();
  expect(() => render(31)).toThrow(
    expect.objectContaining({ code: "template_error", message: expect.stringContaining(steps) }),
  );
});

test("is refused when its model is loaded", () => {
  const model = { specialTokens: [], bosToken: "", eosToken: "" } as never;
  const source =
    "{% for m in messages %}{{ m.content }}{% endfor %}{{ range(400000000) | length }}";
  expect(() => new ChatTemplate(source, model, null, qwen)).toThrow(
    expect.objectContaining({ code: "template_error", message: expect.stringContaining(steps) }),
  );
});

test("long conversations have their budget", () => {
  const back = new JinjaTemplate(
    "{% for m in messages %}{% for n in messages %}{{ n.content[:1] }}{% endfor %}{% endfor %}",
  );
  const messages = Array.from({ length: 300 }, () => ({ role: "user", content: "Hello" }));
  expect(back.render({ messages })).toHaveLength(300 * 300);
  const appended = new JinjaTemplate(
    "{% set ns = namespace(text='') %}{% for m in messages %}{% set ns.text = ns.text ~ m.content %}{% endfor %}{{ ns.text }}",
  );
  const content = "word ".repeat(200);
  const long = Array.from({ length: 1000 }, () => ({ role: "user", content }));
  expect(appended.render({ messages: long })).toHaveLength(1000 * 1000);
});

test("a text that is nearly a number", () => {
  expect(new JinjaTemplate("{{ ('1' * 500000 ~ 'x') | int }}").render({})).toBe("0");
});

test("a list of itself is no number", () => {
  expect(new JinjaTemplate(`${shared}{{ true == x }}{{ x == false }}`).render({})).toBe(
    "FalseFalse",
  );
});

test("a source of blanks", () => {
  const blanks = " ".repeat(1_000_000);
  for (const source of [blanks, `{{ '${blanks}' }}`, `{{${blanks}1 }}`, `{#${blanks}#}`])
    expect(() => new JinjaTemplate(source)).toThrow(/more than 500 blanks follow each other/);
});

test("names of JavaScript's are no methods", () => {
  for (const name of ["constructor", "__proto__", "hasOwnProperty", "valueOf"]) {
    expect(() => new JinjaTemplate(`{{ 'a'.${name}() }}`).render({})).toThrow(/unknown/);
    expect(() => new JinjaTemplate(`{{ [1].${name}() }}`).render({})).toThrow(/unknown/);
    expect(() => new JinjaTemplate(`{{ none | ${name} }}`).render({})).toThrow();
  }
});

test("a source that is longer than any template", () => {
  expect(() => new JinjaTemplate("x".repeat(1024 * 1024 + 1))).toThrow(/characters/);
});
