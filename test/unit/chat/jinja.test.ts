import { describe, expect, it, vi } from "vitest";

import { TemplateRefusal } from "../../../src/chat/template/jinja/budget.ts";
import { JinjaTemplate } from "../../../src/chat/template/jinja/jinja-template.ts";

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
      "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% set a = 2 %}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}",
      "155",
    ],
    [
      "{% for x in [1, 2, 3] %}{% with y = x %}{% if y == 2 %}{% break %}{% endif %}{{ y }}{{ loop.index }}{% endwith %}{% endfor %}{% with %}x{% endwith %}",
      "11x",
    ],
    [
      "{% macro f() %}{% with a = 1 %}{{ varargs[0] }}{{ kwargs }}{% endwith %}{% endmacro %}{{ f(1, z=2) }}",
      "1{'z': 2}",
    ],
    [
      "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.changed(x, 1) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
      "TrueTrue10TrueTrue10TrueTrue10",
    ],
    ["{% for x in [1, 1, 2] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}", "12"],
    [
      "{% for g, l in [{'k': 'b'}, {'k': 'A'}, {'k': 'a'}] | groupby('k') %}{{ g }}{{ l | length }}{% endfor %}{% for g in [{'k': 2}, {}] | groupby('k', default=1) %}{{ g.grouper }}{{ g.list }}{{ g[0] }}{% endfor %}",
      "A2b11[{}]12[{'k': 2}]2",
    ],
    [
      "{{ 2.5 | round }}{{ 3.5 | round }}{{ -2.5 | round }}{{ 0.125 | round(2) }}{{ 2.675 | round(2) }}{{ 1.005 | round(2) }}{{ 12345.6789 | round(-2) }}",
      "2.04.0-2.00.122.671.012300.0",
    ],
    [
      "{{ 3 | round }}{{ 25 | round(-1) }}{{ 15 | round(-1) }}{{ 6 | round(-3) }}{{ 99.5 | round }}{{ 42.55 | round(1, 'floor') }}{{ 3 | round(0, 'ceil') }}{{ 42.6 | round(method='floor') | int }}",
      "320200100.042.53.042",
    ],
    [
      "{{ 'abcabc'.find('a', 1) }}{{ 'abcabc'.rfind('b', 0, 4) }}{{ 'abcabc'.count('a', 1) }}{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith(('x', 'b'), 0, -1) }}{{ 'a😀b😀'.find('😀', 2) }}{{ 'abc'.find('a', 1) }}",
      "311TrueTrue3-1",
    ],
    [
      "{{ object.get(missing, 1) }}{{ object.get(none, 2) }}{{ object.get(3, 4) }}{{ {'get': 1}.get('get') }}{{ {i: 'x', 'y': 2} }}{{ list[missing] is defined }}{{ list[none] is defined }}",
      "1241{3: 'x', 'y': 2}FalseFalse",
    ],
    ["{% set l = [1, 2, 3] %}{{ 0 < l.pop() < 5 }}{{ l }}", "True[1, 2]"],
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
    // Written by Python 3.11.
    [
      "{{ '%s' | format('a') }}|{{ '%5s|%-5s|%.2s' | format('ab', 'ab', 'abc') }}|{{ '%r %s' | format(\"it's\", [1, 'a', none, true]) }}|{{ '%c%c' | format('x', 65) }}|{{ '100%% %s' | format(1.0) }}|{{ '%(a)s-%(b)03d' | format(a=1, b=7) }}",
      "a|   ab|ab   |ab|\"it's\" [1, 'a', None, True]|xA|100% 1.0|1-007",
    ],
    [
      "{{ '%d %i %u' | format(3, -4, 5.9) }}|{{ '%05d|%+d|% d|%-6d|' | format(42, 7, 7, 9) }}|{{ '%x %X %#x %o %#o' | format(255, 255, 255, 8, 8) }}",
      "3 -4 5|00042|+7| 7|9     ||ff FF 0xff 10 0o10",
    ],
    [
      "{{ '%f %.2f %.0f %8.3f %08.3f' | format(1.5, 2.675, 2.5, 3.14159, -3.14159) }}|{{ '%e %.1e %E' | format(12345.678, 0.00012, 10.0 ** 100) }}|{{ '%g %g %g %g %g %G %#g' | format(0.0001, 0.00001, 123456, 1234567, 100.0, 10.0 ** -10, 1.0) }}|{{ '%.2f %5.1f%%' | format(0.125, 99.55) }}",
      "1.500000 2.67 2    3.142 -003.142|1.234568e+04 1.2e-04 1.000000E+100|0.0001 1e-05 123456 1.23457e+06 100 1E-10 1.00000|0.12  99.5%",
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
    [
      "{% set name = 'rsplit' %}{{ s[name]('t') }}{{ s['rsplit']('t') }}{{ {'rsplit': 1}[name] }}{{ list[name] is defined }}",
      `['i', "'s"]['i', "'s"]1False`,
    ],
    ["{% if not t %}{{ s | nothing }}{{ s is nothing }}{{ s is nothing(1) }}{% endif %}", ""],
    [
      "{{ n }}{{ [2].append(3) }}{% set _ = n %}{# c #}{% macro m() %}{{ none }}{% endmacro %}{{ [n] }}{{ n ~ m() }}{% set b %}{{ n }}{% endset %}{{ b }}{{ 'x' if not t }}",
      "NoneNone[None]NoneNoneNone",
    ],
    [
      "{{ 1e100 }} {{ 1E3 }} {{ 2.5e-3 }} {{ -1e+2 }} {{ [1e5, 3][1] }} {{ 1_000 }} {{ 1_0.2_5e1_0 }} {{ 0x1F }} {{ -0b101 }} {{ 0o17 }} {{ 1e400 }}",
      "1e+100 1000.0 0.0025 -100.0 3 1000 102500000000.0 31 -5 15 inf",
    ],
    [
      "{% set e, e5, x1 = 2, 7, 9 %}{{ 1 - e }}{{ 1 - e5 }}{{ 0xe - 5 }}{{ 1 if e5 else 0 }}{{ [[4, 5]].0.1 }}{{ i * 1e1 - e }}",
      "-1-691528.0",
    ],
    [
      "{% for x in [1, 2, 3] %}{% if x == 2 %}{% set seen = x %}{% endif %}{{ x }}{{ seen }},{% endfor %}{{ seen }}",
      "1,22,3,",
    ],
    [
      "{% set seen = 0 %}{% for x in [1, 2] %}{{ seen }}{% set seen = x %}{{ seen }},{% endfor %}{{ seen }}",
      "01,02,0",
    ],
    [
      "{% macro show() %}{{ x }}{{ loop is defined }}{{ i }}{% endmacro %}{% for x in [1] %}{{ show() }}{% endfor %}",
      "False3",
    ],
    [
      "{% macro wrap() %}<{{ caller(1) }}>{% endmacro %}{% for x in [7] %}{% call(y) wrap() %}{{ x }}{{ y }}{% endcall %}{% endfor %}",
      "<71>",
    ],
    [
      "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{{ loop.cycle('x') }}{% endfor %}",
      "123x",
    ],
    ["{{ [] | first }}{{ [] | last }}{{ ([] | first) is defined }}", "False"],
    [
      "{{ object | list }}{{ object | first }}{{ object | join(',') }}{{ 'abc' | reverse }}{{ 'cab' | sort }}",
      "['a', 'items', 'b']aa,items,bcba['a', 'b', 'c']",
    ],
    [
      "{{ missing | join(', ') }}{{ missing | replace('a', 'b') }}{{ missing | trim('x') }}{{ missing | indent(2) }}",
      "",
    ],
    [
      "{{ 5 | trim }}{{ n | upper }}{{ 'xay' | trim('xy') }}{{ missing | default }}{{ '' | d('e', true) }}",
      "5NONEae",
    ],
    [
      "{{ ['a', 'b'] | map('replace', 'a', 'c') | join }}{{ [n] | map('default', 'd', true) | join }}{{ [object] | map('tojson', sort_keys=true) | join }}",
      'cbd{"a": 1, "b": [2], "items": "mine"}',
    ],
    [
      "{{ ['b', 'A', 'a'] | unique | list }}{{ ['a', 'B'] | max }}{{ [{'n': 2}, {'n': 1}] | min(attribute='n') }}{{ ['a', 'B'] | sort(reverse=true) }}",
      "['b', 'A']B{'n': 1}['B', 'a']",
    ],
    [
      "{{ {'b': 1, 'A': 2} | dictsort | map('first') | join }}{{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) | map('first') | join }}{{ [1, 2, 3] | batch(2, 0) | list }}",
      "AbAb[[1, 2], [3, 0]]",
    ],
    [
      "{{ 'HELLO it\\'s x_y' | title }}|{{ 'HELLO it\\'s x_y'.title() }}|{{ 'hELLO' | capitalize }}|{{ 'hELLO'.capitalize() }}",
      "Hello It's X_y|Hello It'S X_Y|Hello|Hello",
    ],
    [
      "{{ -1.5 | int }}{{ '12abc' | int }}{{ '3.7' | int }}{{ 'x' | int(7) }}{{ '1.5x' | float }}{{ '<&' | e }}",
      "-10370.0&lt;&amp;",
    ],
    [
      "{{ 'a\\r\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent('> ', true) }}|{{ '\\na' | indent(2, first=true) }}",
      "a\n  b\n\n  c|> a\n> b|  \n  a",
    ],
    ["{{ '😀b' | length }}{{ '😀b'[0] }}{{ '😀b'[-1] }}{{ '😀b'.find('b') }}", "2😀b1"],
    [
      "{{ 'a b c'.split(' ', maxsplit=1) }}{{ 'a,b'.split(sep=',') }}{{ ' a  b c'.split(none, 1) }}",
      "['a', 'b c']['a', 'b']['a', 'b c']",
    ],
    [
      "{{ ', '.join(['a', 'b']) }}{{ 'a\\r\\nb\\n'.splitlines() }}{{ 'a=b=c'.partition('=')[2] }}{{ 'a=b=c'.rpartition('=')[0] }}{{ 'abab'.rfind('b') }}{{ '12'.isdigit() }}",
      "a, b['a', 'b']b=ca=b3True",
    ],
    ["{{ n == missing }}{{ n == n }}{{ [n] == [none] }}{{ n != 0 }}", "FalseTrueTrueTrue"],
    ["{{ list.0 }}{{ list.4.k }}{{ [[1, 2]].0.1 }}", "1v2"],
    ["{{ 'ab'.removesuffix('') }}{{ 'ab'.removesuffix('b') }}", "aba"],
    ["{{ '\\ufeffx' | trim | length }}{{ 'x\\x85'.strip() | length }}", "21"],
    [
      "{{ t is number }}{{ object is iterable }}{{ '1' is lower }}{{ 'a1' is lower }}{{ n in object }}{{ 1 in object }}",
      "TrueTrueFalseTrueFalseFalse",
    ],
    [
      "{{ -7 % 3 }}{{ 7 % -3 }}{{ t + 1 }}{{ 'a' < 'b' }}{{ [0] * 2 }}{{ 2 ** -1 }}{{ 7 // 2.0 }}{{ -7 // 2 }}",
      "2-22True[0, 0]0.53.0-4",
    ],
    [
      "{{ 0.00001 }} {{ 12345678901234567.0 }} {{ 0.0001 }} {{ 2.0 | tojson }} {{ [0.00001, 0.5] | tojson }}",
      "1e-05 1.2345678901234568e+16 0.0001 2.0 [1e-05, 0.5]",
    ],
    [
      "{{ {'a': 1, 'B': [2, {}], '_': 'é😀'} | tojson(sort_keys=true, ensure_ascii=true) }}{{ {'a': [1, []]} | tojson(indent=1) }}{{ [1, 2] | tojson(separators=(',', ':')) }}",
      '{"B": [2, {}], "_": "\\u00e9\\ud83d\\ude00", "a": 1}{\n "a": [\n  1,\n  []\n ]\n}[1,2]',
    ],
    ["{{ ['\\u200b\\x01\\xa0\\\\é'] }}", "['\\u200b\\x01\\xa0\\\\é']"],
    ["a\r\n{% if t %}\r\nb\r\n{% endif %}\r\n{{ 'c\r\nd' | length }}", "a\nb\n3"],
    [
      "x -}\n  {-1}\n{{ '%}\n' }}{{ ['  {% x'] | first }}\n  {# c #}\ny",
      "x -}\n  {-1}\n%}\n  {% x\ny",
    ],
    ["  {%+ if t +%}\n b\n  {%- endif +%}\n c{#+ d +#}\n", "  \n b\n c"],
    [
      'a {% raw -%} {{ x }}\n{% if %}"\\  {%- endraw %}\nb{%- raw %}\n{# {% endraw -%} c',
      'a {{ x }}\n{% if %}"\\b\n{# c',
    ],
    ["{{ ('a',)[0] }}{{ 'a' in ('a', 'b',) }}{{ () | length }}{{ range(2,) | sum }}", "aTrue01"],
    [
      "{{ 1 < 2 < 3 }}{{ 3 > 2 > 2 }}{{ 1 < i <= 3 != 4 }}{{ 1 == 1 == 1 }}{{ 2 < 1 < f.x }}",
      "TrueFalseTrueTrueFalse",
    ],
    [
      "{{ (1 < 2) == true }}{{ (i == 3) != (i == 4) }}{{ [1 == 1, 2 == 2] }}{{ 1 == 1 and 2 == 2 }}",
      "TrueTrue[True, True]True",
    ],
    [
      "{{ [] == false }}{{ [1] == true }}{{ 1.0 == true }}{{ [true] == [1] }}",
      "FalseFalseTrueTrue",
    ],
    ["{% set l = ['x', 'y'] %}{{ 'a'.replace('a', l.pop()) }}{{ l }}", "y['x']"],
    ["{% set m = 'aba'.replace %}{{ m('a', 'c') }}{{ 'aba'.replace('a', 'c', 1) }}", "cbccba"],
    ["{{ 'aa' | replace('a', 'b', -1) }}{{ 'aa'.replace('a', 'b', count=-1) }}", "bbbb"],
    ["{{ 0.1 % 3 }} {{ -5.5 % 3 }} {{ 7.5 % -2 }} {{ -7 % 7 }}", "0.1 0.5 -0.5 0"],
    ["{{ '😀a😁'.strip('😁') }}{{ 'xaxx'.rstrip('x') }}{{ 'xax'.lstrip('yx') }}", "😀axaax"],
    ["{{ '{}{a}{1}{}'.format([1], none, a=2) }}", "[1]2NoneNone"],
    [
      "{{ [{'n': 2}, {'n': 1}, {'n': 2, 'b': 0}] | sort(attribute='n') }}{{ [] | max }}",
      "[{'n': 1}, {'n': 2}, {'n': 2, 'b': 0}]",
    ],
    ["{{ '\\d\\s' }}{{ '\\\\' }}\\d", "\\d\\s\\\\d"],
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
    ["{% for x in [1] %}{{ loop.cycle() }}{% endfor %}", /loop\.cycle takes at least one value/u],
    ["{{ {}.get() }}", /get takes a key/u],
    ["{{ 'x'.startswith(1) }}", /startswith and endswith take a text/u],
    ["{{ {[1]: 2} }}", /a key is a text or a number, not ArrayValue/u],
    ["{{ 1 | round(0, 'up') }}", /round takes "common", "ceil" or "floor" as method/u],
    ["{{ 1 | round(0.5) }}", /round takes a whole number of digits/u],
    ["{{ [{}] | groupby }}", /groupby takes an attribute/u],
    ["{% with 1 %}{% endwith %}", /with takes names and their values/u],
    ["{{ 'x' + [1] }}", /cannot add ArrayValue to a string/u],
  ])("%s", (source, message) => {
    expect(() => render(source, { messages: [] })).toThrow(message);
    expect(() => render(source, { messages: [] })).not.toThrow(TemplateRefusal);
  });

  it("tells a refusal of the template's own from that", () => {
    expect(() => render("{{ raise_exception('Roles must alternate') }}")).toThrow(TemplateRefusal);
  });
});
