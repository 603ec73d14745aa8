import { describe, expect, it, vi } from "vitest";

import { JinjaTemplate, TemplateRefusal } from "../../../src/chat/template/jinja/jinja-template.ts";

const values = {
  t: true,
  n: null,
  i: 3,
  f: 1.5,
  s: "it's",
  list: [1, "a", true, null, { k: "v" }],
  object: { a: 1, items: "mine", b: [2] },
};

function render(source: string, variables: Record<string, unknown> = values): string {
  return new JinjaTemplate(source).render(variables);
}

describe("JinjaTemplate writes as Python's Jinja", () => {
  it.each<[source: string, text: string]>([
    ["{{ t }} {{ not t }} {{ n is none }}", "True False True"],
    ["{{ list }}", "[1, 'a', True, None, {'k': 'v'}]"],
    ["{{ object | string }}", "{'a': 1, 'items': 'mine', 'b': [2]}"],
    ["{{ s ~ i ~ t ~ list[3:4] }}", "it's3True[None]"],
    ["{{ [s] }}", '["it\'s"]'],
    ["{{ list | join('-') }}", "1-a-True-None-{'k': 'v'}"],
    ["{{ f }} {{ 2.0 }} {{ 7 // 2 }} {{ 7 / 2 }}", "1.5 2.0 3 3.5"],
    ["{{ 'ab' * 2 }}{{ 'x' + missing }}{{ missing + 'y' }}", "ababxy"],
    ["{{ '{} is {1}{{}}'.format(s, i) }}", "it's is 3{}"],
    ["{{ '<<a>>'.strip('<>') }}{{ 'abab'.count('b') }}{{ 'abc'.find('c') }}", "a22"],
    ["{{ 'pre-x'.removeprefix('pre-') }}{{ [3, 1, 2] | min }}{{ [3, 1, 2] | max }}", "x13"],
    ["{% for x in missing %}x{% else %}none{% endfor %}", "none"],
    ["{% for c in 'äb' %}{{ c }}.{% endfor %}", "ä.b."],
    [
      "{% for x in [1,2,3] %}a{{ x }}{% if x == 2 %}{% continue %}{% endif %}b{% else %}none{% endfor %}",
      "a1ba2a3b",
    ],
    [
      "{% for x in [1,2,3] %}{% for y in [4,5] %}{{ y }}{% if x == 2 %}{{ x }}{% break %}{% endif %}{% endfor %};{% endfor %}",
      "45;42;45;",
    ],
    ["{% for x in [1,2] %}{{ x }}{% continue %}{% else %}none{% endfor %}", "12none"],
    [
      "{{ missing is iterable }}{{ missing | list | length }}{{ missing.deeper is defined }}",
      "True0False",
    ],
    [
      "{% for k, v in object.items() %}{{ k }},{% endfor %}{{ object.a }}{{ object['items'] }}",
      "a,items,b,1mine",
    ],
    [
      "{% set m = {0: 'zero', 512: 'half'} %}{{ m[512] }}{% for k, v in m | dictsort %}{{ k + 1 }}{{ v }}{% endfor %}",
      "half1zero513half",
    ],
    ["{% set a = [1] %}{% set _ = a.append(2) %}{{ a }}{{ a.pop(0) }}{{ a }}", "[1, 2]1[2]"],
    ["{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }};{% endfor %}", "3;7;"],
    [
      "{{ 1 == true }}{{ '1' == 1 }}{{ n == false }}{{ [1] == [1] }}{{ {'a': 1} == {'a': 1} }}",
      "TrueFalseFalseTrueTrue",
    ],
    ["{{ 'a' in list }}{{ missing in list }}{{ missing not in list }}", "TrueFalseTrue"],
    ["{{ ['a', 'b'] | map('upper') | join }}", "AB"],
    ["{% for i in range(1, 8, 3) %}{{ i }}{% endfor %}{{ range(2) | list }}", "147[0, 1]"],
    ["{{ object | tojson }} {{ s | tojson }}", '{"a": 1, "items": "mine", "b": [2]} "it\'s"'],
    // What jinja2 3.1.6 writes.
    [
      "{{ 'a b c'.rsplit(' ', 1) }}{{ ' a  b c '.rsplit(none, 1) }}{{ 'aXXbXXXc'.rsplit('XX', maxsplit=1) }}{{ ''.rsplit() }}",
      "['a b', 'c'][' a  b', 'c']['aXXbX', 'c'][]",
    ],
    [
      "{{ [1, 2.5, true] | sum }}{{ [[1, 2], [3]] | sum(start=[]) }}{{ [{'a': {'b': 2}}] | sum(attribute='a.b') }}{{ missing | sum }}",
      "4.5[1, 2, 3]20",
    ],
    [
      "{{ [1, 0, none] | select | list }}{{ [1, 2, 3] | reject('divisibleby', 3) | list }}{{ [1, 2] | select('>=', 2) | list }}{{ 'abc' | select('in', 'ab') | join }}",
      "[1][1, 2][2]ab",
    ],
    [
      "{{ [1, 2, 3, 4, 5] | slice(3, 'x') | list }}{{ [1] | slice(2) | list }}{{ 'a b-c  é_1' | wordcount }}",
      "[[1, 2], [3, 4], [5, 'x']][[1], []]4",
    ],
    [
      "{% set l = [{'a': 2}, {'a': [3]}, {}] %}{{ l | selectattr('a', 'equalto', 2) | list }}{{ l | selectattr('a', 'in', [2, 5]) | list }}{{ l | selectattr('a.0', 'eq', 3) | list }}{{ l | rejectattr('a') | list }}{{ l | selectattr('a', 'undefined') | list }}",
      "[{'a': 2}][{'a': 2}][{'a': [3]}][{}][{}]",
    ],
    [
      "{{ 4 is divisibleby(2) }}{{ 4 is not divisibleby 2 }}{{ 3 is eq(1 + 2) }}{{ 'b' is ge('a') }}{{ 'a' is in(['a']) and 2 is in {'a': [1, 2]}.a }}{{ 1 is sameas(true) }}",
      "TrueFalseTrueTrueTrueFalse",
    ],
    [
      "{{ 1.0 is float }}{{ 'slice' is filter }}{{ 'nope' is filter }}{{ 'eq' is test }}{{ 'nope' is test }}{{ 4 is divisibleby(2) is true }}",
      "TrueTrueFalseTrueFalseTrue",
    ],
    ["{% for x in list if x is in([1, 'a']) %}{{ x }}{% endfor %}", "1aTrue"],
    [
      "{% filter upper %}a{% endfilter %}{% macro m(x) %}{{ x is gt(1) }}{% endmacro %}{{ m(2) }}{{ {'k': s | first if t is true else 1}.k }}",
      "ATruei",
    ],
    ["{% if not t %}{{ s | nothing }}{{ s is nothing }}{{ s is nothing(1) }}{% endif %}", ""],
  ])("%s", (source, text) => {
    expect(render(source)).toBe(text);
  });

  it("opens a template whose expression is as deep as it is long", () => {
    const source = `{% if no %}{{ a${" + a".repeat(100_000)} }}{% endif %}`;
    expect(render(source)).toBe("");
  });

  it("keeps the language's own names", () => {
    const variables = { true: false, range: "x", namespace: 1, raise_exception: null };
    const source = "{{ true }}{{ range(2) | length }}{% set ns = namespace(a=1) %}{{ ns.a }}";
    expect(render(source, variables)).toBe("True21");
  });

  it("tells the date", () => {
    vi.useFakeTimers({ now: new Date(2026, 6, 4, 15, 5, 9), toFake: ["Date"] });
    try {
      expect(render("{{ strftime_now('%d %b %Y|%A %B %-d|%H:%M:%S|%I %p|%F %T|%j') }}")).toBe(
        "04 Jul 2026|Saturday July 4|15:05:09|03 PM|2026-07-04 15:05:09|%j",
      );
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("JinjaTemplate names what is missing", () => {
  it.each([
    ["{{ messages.frobnicate('x') }}", /messages\.frobnicate\(\) is unknown/u],
    ["{{ shout('x') }}", /shout\(\) is unknown/u],
    ["{{ 'x' | frobnicate }}", /frobnicate/u],
    ["{{ 'x' is frobnicated }}", /frobnicated/u],
    ["{{ 'x' is frobnicated(1) }}", /frobnicated/u],
    ["{{ 'x' is gt(1) }}", /StringValue and IntegerValue have no order/u],
    ["{{ [1] | slice(100000000) }}", /too many steps/u],
    ["{{ 'x' + [1] }}", /cannot add ArrayValue to a string/u],
  ])("%s", (source, message) => {
    expect(() => render(source, { messages: [] })).toThrow(message);
    expect(() => render(source, { messages: [] })).not.toThrow(TemplateRefusal);
  });

  it("tells a refusal of the template's own from that", () => {
    expect(() => render("{{ raise_exception('Roles must alternate') }}")).toThrow(TemplateRefusal);
  });
});
