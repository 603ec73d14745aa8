/** Templates that would stop the server: each ends at once, with an error that says why. */

import { expect, test } from "vitest";
import { ChatTemplate } from "../../../src/chat/template/template.ts";
import { JinjaTemplate } from "../../../src/chat/template/jinja/jinja-template.ts";

const steps = "it takes too many steps";
const text = "it writes too much text";
const doubled = "{% set x = x ~ x %}".repeat(40);
const nested = "{% set x = [x, x] %}".repeat(60);
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
    "{% set x = 'a' * 10000000 %}{% for i in range(1000) %}{{ x | upper | length }}{% endfor %}",
    text,
  ],
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
  const template = new ChatTemplate(source, model, null);
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
  expect(() => new ChatTemplate(source, model, null)).toThrow(
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
