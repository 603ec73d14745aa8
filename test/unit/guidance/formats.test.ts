import fc from "fast-check";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { expect, test } from "vitest";
import { compileValidator } from "../../../src/guidance/validator.ts";
import { formatOf, ownFormats } from "../../../src/guidance/schema/decide/formats.ts";

function maskOf(name: string): RegExp {
  const format = formatOf(name);
  if (typeof format === "string") throw new Error(name);
  return new RegExp(`^(?:${format.pattern})$`, "u");
}

test("uri: with an authority and without", () => {
  const mask = maskOf("uri");
  for (const text of [
    "https://example.com/a/b?c=d#e",
    "http://user:word@example.com:8080",
    "file:///etc/hosts",
    "mailto:ann@example.com?subject=hi",
    "urn:isbn:0451450523",
    "tel:+1-816-555-1212",
    "data:text/plain;base64,SGk=",
    "http://my_service:8080/a",
    "https://_a.example.com",
    "http://[::1]:3000/a",
    "https://ann@[2001:db8::417a]",
  ])
    expect(mask.test(text), text).toBe(true);
  for (const text of [
    "example.com",
    "//example.com",
    "mailto:",
    "urn:a b",
    "1a:b",
    "a:%zz",
    "http://[::1",
    "http://[1:2]/",
  ])
    expect(mask.test(text), text).toBe(false);
});

test("regex: what JavaScript reads, with its flag u and without", () => {
  const mask = maskOf("regex");
  for (const text of [
    "",
    "^[a-z]+$",
    "([abc])+\\s+$",
    "^(?!foo).*\\.(?:js|ts)x?$",
    "[\\w.-]+@[\\w-]+",
    "^(?:@[a-z0-9-*~][a-z0-9-*._~]*/)?[^\\]]{1,214}?$",
    "\\d{3}-\\d{4,}|é",
  ])
    expect(mask.test(text), text).toBe(true);
  for (const text of ["^(abc]", "a{2,1}", "[z-a]", "a**", "(?<=x)*", "\\", "a)", "[]", "\\Z", "{"])
    expect(mask.test(text), text).toBe(false);
  const unit = fc.constantFrom(..."ab-z^$|()[]{}*+?.\\dwbBuZ019,:=!<é/");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 9 }), (text) => {
      if (!mask.test(text)) return;
      for (const flags of ["", "u"]) expect(() => new RegExp(text, flags), text).not.toThrow();
    }),
    { numRuns: 20_000 },
  );
});

test("ipv6 and duration: as they are written", () => {
  const known = {
    ipv6: ["::", "::1", "1::", "2001:db8::8:800:200c:417a", "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1"],
    duration: ["P3Y6M4DT12H30M5S", "P4W", "PT36H", "P1D"],
  };
  const others = {
    ipv6: ["", ":", "1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "::1.2.3"],
    duration: ["P", "PT", "P1YT", "P1Y2W", "1D", "P1D2H"],
  };
  for (const name of ["ipv6", "duration"] as const) {
    for (const text of known[name]) expect(maskOf(name).test(text), text).toBe(true);
    for (const text of others[name]) expect(maskOf(name).test(text), text).toBe(false);
  }
});

test("references, templates and what OpenAPI has: as they are written", () => {
  const known = {
    "uri-reference": ["", "#a", "../b/c.json#/d", "/a?b=c", "//host/p", "https://example.com/a"],
    "uri-template": ["/users/{id}", "http://a.de/{+path}{?q,limit:3}{&more*}", "{#x}"],
    url: ["https://www.example.com", "http://example.co.uk:8080/a/b?c=d#e"],
    byte: ["", "YQ==", "YWI=", "YWJj"],
    "iso-time": ["01:02:03", "01:02:03.5Z"],
    "iso-date-time": ["2024-02-29T01:02:03", "2024-02-29 01:02:03+01:00"],
    "json-pointer-uri-fragment": ["#", "#/a/b~0c%20"],
  };
  const others = {
    "uri-reference": ["a b", "1:b", "a%z"],
    "uri-template": ["{", "{a b}", "{}"],
    url: ["example.com", "https://localhost", "https://a b.de"],
    byte: ["Y", "YQ=", "YQ==YQ==", "Y-_="],
    "iso-time": ["25:00:00", "1:2:3"],
    "iso-date-time": ["2023-02-29T01:02:03", "2024-02-29"],
    "json-pointer-uri-fragment": ["", "/a", "#a"],
  };
  for (const name of Object.keys(known) as (keyof typeof known)[]) {
    for (const text of known[name]) expect(maskOf(name).test(text), text).toBe(true);
    for (const text of others[name]) expect(maskOf(name).test(text), text).toBe(false);
  }
});

test("pydantic's names: as it reads them", () => {
  const known = {
    date: ["0001-01-01", "2024-02-29"],
    email: [
      "ann@example.com",
      "ann@example.xn--p1ai",
      "a.b+c@x-y.co.uk",
      `${"a".repeat(64)}@example.com`,
    ],
    uuid4: ["9b2a1c3e-0f4d-4a5b-8c6d-7e8f9a0b1c2d"],
    uuid7: ["0190163d-8694-739b-aea5-966c26f8ad91"],
    ipvanyaddress: ["127.0.0.1", "::1"],
    ipvanyinterface: ["10.1.2.3/8", "2001:db8::1/64", "::1"],
    ipvanynetwork: ["10.0.0.0/8", "2001:db8::/32"],
    ipv4interface: ["10.1.2.3/8", "10.1.2.3"],
    ipv6network: ["2001:db8::/32"],
    base64: ["", "YWI="],
  };
  const others = {
    date: ["0000-01-01", "0000-02-29", "2023-02-29"],
    email: ["ann@example", "ann@example.1", ".ann@example.com", `${"a".repeat(65)}@example.com`],
    uuid4: ["9b2a1c3e-0f4d-1a5b-8c6d-7e8f9a0b1c2d", "0"],
    uuid7: ["9b2a1c3e-0f4d-4a5b-8c6d-7e8f9a0b1c2d"],
    ipvanyaddress: ["127.0.0", "localhost"],
    ipvanyinterface: ["10.1.2.3/33", "::1/129"],
    ipvanynetwork: ["10.0.0/8", "::/"],
    ipv4interface: ["10.1.2.3/33", "10.1.2/8"],
    ipv6network: ["2001:db8::/129"],
    base64: ["YQ", "Y-_="],
  };
  for (const name of Object.keys(known) as (keyof typeof known)[]) {
    for (const text of known[name]) expect(maskOf(name).test(text), text).toBe(true);
    for (const text of others[name]) expect(maskOf(name).test(text), text).toBe(false);
  }
});

test("the validator knows them too", () => {
  const validate = compileValidator({ type: "string", format: "uuid4" });
  expect(validate("9b2a1c3e-0f4d-4a5b-8c6d-7e8f9a0b1c2d")).toBeNull();
  expect(validate("any")).toMatchObject({ isCertain: true });
});

test.each([
  "uri",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
  "duration",
  "date",
  "time",
  "date-time",
  "uri-reference",
  "uri-template",
  "url",
  "byte",
  "iso-time",
  "iso-date-time",
  "json-pointer-uri-fragment",
  ...ownFormats.keys(),
])("%s: the mask is no wider than the validator", (name) => {
  const format = formatOf(name);
  if (typeof format === "string") throw new Error(name);
  const validate = compileValidator({ type: "string", format: name });
  const texts = fc.stringMatching(new RegExp(`^(?:${format.pattern})$`));
  fc.assert(
    fc.property(texts, (text) => {
      fc.pre(text.length <= (format.maxLength ?? Infinity));
      expect(validate(text)).toBeNull();
    }),
    { numRuns: 300, seed: 16 },
  );
});

test.each(["email", "ipv4", "ipv6", "uuid", "uri-reference", "uri-template"] as const)(
  "%s: nothing that the validator accepts lies outside of the widest",
  (name) => {
    const accepted = fullFormats[name] as RegExp;
    const { pattern, widest = pattern } = formatOf(name) as Exclude<
      ReturnType<typeof formatOf>,
      string
    >;
    const all = new RegExp(`^(?:${widest})$`, "u");
    fc.assert(
      fc.property(fc.stringMatching(new RegExp(accepted.source)), fc.boolean(), (text, isUpper) => {
        const cased = isUpper ? text.toUpperCase() : text;
        expect(all.test(cased) || !accepted.test(cased), cased).toBe(true);
      }),
      { numRuns: 300, seed: 16 },
    );
  },
);

test.each([
  ["date", "0000-02-29"],
  ["time", "23:59:60.0123456789z"],
  ["time", "01:02:03+0130"],
  ["time", "01:02:03-01"],
  ["iso-time", "23:59:60"],
  ["date-time", "0000-01-01 23:59:60Z"],
  ["date-time", "2024-01-01\u{2003}01:02:03Z"],
  ["iso-date-time", "2024-01-01\n01:02:03"],
  ["hostname", "example.com."],
  ["duration", "P1Y1D"],
  ["duration", "PT1H1S"],
  ["uri", "https://[v1.a]:1/?a#b"],
  ["url", "FTP://a:b@\u00e9\u00e9.\u00e9\u00e9/\u00e9"],
  ["byte", "YQ==\nno base64"],
])("%s: %j is accepted, and not outside of the widest", (name, text) => {
  expect(compileValidator({ type: "string", format: name })(text)).toBeNull();
  const { pattern, widest = pattern } = formatOf(name) as Exclude<
    ReturnType<typeof formatOf>,
    string
  >;
  expect(new RegExp(`^(?:${widest})$`, "u").test(text)).toBe(true);
});
