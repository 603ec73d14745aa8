/**
 * Formats as masks, each no wider than what the validator (ajv-formats) accepts. A format that is not
 * listed is an annotation, as JSON Schema has it, unless the validator knows it.
 */

const year = "[0-9]{4}";
const leapYear = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const date =
  `(?:${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|` +
  `(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`;
const clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?";
const zone = "(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
const label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
const octet = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
const hex = "[0-9a-fA-F]";
const pathCharacter = `(?:[a-zA-Z0-9_.!~*'();:@&=+$,-]|%${hex}{2})`;
const authority = `(?:[a-zA-Z0-9_.!~*'();:&=+$,-]*@)?(?:${label}(?:\\.${label})*)?(?::[0-9]{1,5})?`;
const path = `${pathCharacter}+(?:/${pathCharacter}*)*`;
const afterPath = `(?:${pathCharacter}|[/?])*`;
/** With an authority, as `https:` has it, or without, as `mailto:` and `urn:`. */
const uri =
  `[a-zA-Z][a-zA-Z0-9+.-]*:(?://${authority}(?:/${pathCharacter}*)*|/(?:${path})?|${path})` +
  `(?:\\?${afterPath})?(?:#${afterPath})?`;

interface Format {
  /** Matches the whole string. Undefined: the mask engine knows the format by its name. */
  pattern?: string;
  maxLength?: number;
}

const known = new Map<string, Format>([
  ["date", { pattern: date }],
  ["time", { pattern: clock + zone }],
  ["date-time", { pattern: `${date}[tT]${clock}${zone}` }],
  ["email", { pattern: `${atom}(?:\\.${atom})*@(?:${label}\\.)+${label}` }],
  ["hostname", { pattern: `${label}(?:\\.${label})*`, maxLength: 253 }],
  ["ipv4", { pattern: `(?:${octet}\\.){3}${octet}` }],
  ["ipv6", {}],
  ["uuid", { pattern: `${hex}{8}-(?:${hex}{4}-){3}${hex}{12}` }],
  ["duration", {}],
  ["uri", { pattern: uri }],
  ["json-pointer", { pattern: "(?:/(?:[^~/]|~0|~1)*)*" }],
  ["relative-json-pointer", { pattern: "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~0|~1)*)*)" }],
]);

/** The validator checks these, and no mask can. */
const unmasked = new Set([
  "iso-time",
  "iso-date-time",
  "uri-reference",
  "uri-template",
  "url",
  "regex",
  "json-pointer-uri-fragment",
  "byte",
]);

export function formatOf(name: string): Format | "annotation" | "unmasked" {
  return known.get(name) ?? (unmasked.has(name) ? "unmasked" : "annotation");
}
