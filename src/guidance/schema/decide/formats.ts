/**
 * Formats as masks, each no wider than what the validator accepts: ajv-formats, and the patterns of `ownFormats` for what
 * it does not know (names of pydantic's). A format that is not listed is an annotation, as JSON Schema has it, unless the
 * validator knows it.
 */

import type { FormatName } from "ajv-formats";
import { fullFormats } from "ajv-formats/dist/formats.js";

/** From 0001: the year 0000 is none in Python's calendar. */
const year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
const leapYear =
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const date =
  `(?:${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|` +
  `(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`;
const clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?";
const zone = "(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]";
const label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
/** Readers of addresses take 64 characters before the @ and 254 in all (RFC 5321), which only many dots exceed here. */
const emailLabel = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?";
const topLabel = "(?:[a-zA-Z]{2,24}|xn--[a-zA-Z0-9-]{0,20}[a-zA-Z0-9])";
const email = `${atom}(?:\\.?${atom}){0,63}@(?:${emailLabel}\\.){1,4}${topLabel}`;
const octet = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
const ipv4 = `(?:${octet}\\.){3}${octet}`;
const hex = "[0-9a-fA-F]";
const group = `${hex}{1,4}`;
const lastGroups = `(?:${group}:${group}|${ipv4})`;
/** As RFC 3986 has it: `::` stands for the groups that are missing. */
const ipv6 = [
  `(?:${group}:){6}${lastGroups}`,
  ...[5, 4, 3, 2, 1, 0].map(
    (count) => `${groupsBefore(5 - count)}::(?:${group}:){${count}}${lastGroups}`,
  ),
  `${groupsBefore(6)}::${group}`,
  `${groupsBefore(7)}::`,
].join("|");
const ipv4WithLength = `${ipv4}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?`;
const ipv6WithLength = `(?:${ipv6})(?:/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?`;
const days = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
const hours = "(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
const duration = `P(?:[0-9]+W|${days}(?:T${hours})?|T${hours})`;
const pathCharacter = `(?:[a-zA-Z0-9_.!~*'();:@&=+$,-]|%${hex}{2})`;
/** With underscores, as services are called that are no hosts of the Internet. */
const hostLabel = "[a-zA-Z0-9_](?:[a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?";
/** Addresses as they are mostly written: all together have too many states beside a pattern. */
const addressInHost = `(?:${group}:){1,4}:(?:${group})?|::1?`;
const host = `${hostLabel}(?:\\.${hostLabel})*|\\[(?:${addressInHost})\\]`;
const authority = `(?:[a-zA-Z0-9_.!~*'();:&=+$,-]*@)?(?:${host})?(?::[0-9]{1,5})?`;
const path = `${pathCharacter}+(?:/${pathCharacter}*)*`;
const afterPath = `(?:${pathCharacter}|[/?])*`;
const ending = `(?:\\?${afterPath})?(?:#${afterPath})?`;
const rooted = `//${authority}(?:/${pathCharacter}*)*|/(?:${path})?`;
const scheme = "[a-zA-Z][a-zA-Z0-9+.-]*:";
/** With an authority, as `https:` has it, or without, as `mailto:` and `urn:`. */
const uri = `${scheme}(?:${rooted}|${path})${ending}`;
/** A colon in its first segment would make that a scheme. */
const relativePath = `(?:[a-zA-Z0-9_.!~*'();@&=+$,-]|%${hex}{2})+(?:/${pathCharacter}*)*`;
const uriReference = `(?:(?:${scheme})?(?:${rooted})|${scheme}${path}|${relativePath})?${ending}`;
const domain = "(?:[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*\\.)+[a-zA-Z]{2,}";
const url = `(?:https?|ftp)://${domain}(?::[0-9]{2,5})?(?:/(?:${path})?${ending})?`;
const variable = "[a-zA-Z0-9_]+(?::[1-9][0-9]{0,3}|\\*)?";
const templateText = `[a-zA-Z0-9_.!~*();:@&=+$,/?#-]|%${hex}{2}`;
const uriTemplate = `(?:${templateText}|\\{[+#./;?&]?${variable}(?:,${variable})*\\})*`;
const pointerCharacter = `(?:[a-zA-Z0-9_.!$&'()*+,;:=@-]|%${hex}{2}|~0|~1)`;
const sextet = "[a-zA-Z0-9+/]";
/** As JavaScript reads expressions with and without its flag `u`, and most other languages do: groups two levels deep, ranges that cannot be empty. */
const escapedText = "\\\\(?:[dDsSwWtnrfv.*+?^$(){}|/\\[\\]\\\\]|u[0-9a-fA-F]{4})";
const ordered = "a-[b-z]|[a-y]-z|A-[B-Z]|[A-Y]-Z|0-[1-9]|[0-8]-9";
const inClass = `[^\\\\\\[\\]^-]|${escapedText}|\\\\-`;
const atomOfRegex = `(?:[^\\\\()\\[\\]{}*+?|^$]|${escapedText}|\\[\\^?-?(?:(?:${ordered})-?|${inClass})+-?\\])`;
const times =
  "(?:(?:[*+?]|\\{(?:[0-9]{1,3},?|[0-9]{1,3},[1-9][0-9]{3}|[0-9],[1-9][0-9]{1,2}|[01],[1-9])\\})\\??)?";
const partsOfRegex = (inner: string): string =>
  `(?:[|^$]|\\\\[bB]|\\(\\?<?[=!]${inner}\\)|(?:${atomOfRegex}|\\((?:\\?:)?${inner}\\))${times})*`;
const regex = partsOfRegex(partsOfRegex(`(?:[|^$]|${atomOfRegex}${times})*`));
const base64 = `(?:${sextet}{4})*(?:${sextet}{2}==|${sextet}{3}=)?`;

/** What the validator accepts, and may be more: of each format whose mask is narrower. */
const widestDate = "[0-9]{4}-[0-9]{2}-[0-9]{2}";
const widestTime = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]+)?(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)?";
const widest = {
  date: widestDate,
  time: widestTime,
  dateTime: `${widestDate}[tT\\s]${widestTime}`,
  email: "[!-?A-~]+@[a-zA-Z0-9.-]+",
  hostname: "[a-zA-Z0-9][a-zA-Z0-9.-]*",
  ipv6: "[0-9a-fA-F:.]*:[0-9a-fA-F:.]*",
  uuid: "[0-9a-fA-FurniURNI:]{8,}-[0-9a-fA-F-]+",
  duration: "P[0-9YMWDTHS]+",
  uri: "[a-zA-Z][a-zA-Z0-9+.-]*:[!-~]*",
  uriReference: "[!-~]*",
  uriTemplate: "[^\\x00-\\x20]*",
  url: "[^:]+://\\S+",
  // It looks at one line.
  byte: `(?:${base64}|[\\s\\S]*[\\n\\r\\u2028\\u2029][\\s\\S]*)`,
};

interface Format {
  /** Matches the whole string. */
  pattern: string;
  maxLength?: number;
  /** Matches all that the validator accepts. Default: the pattern does. */
  widest?: string;
}

/** Those that ajv-formats does not know. */
export const ownFormats = new Map<string, Format>([
  ...[1, 3, 4, 5, 6, 7, 8].map((version): [string, Format] => [
    `uuid${version}`,
    { pattern: `${hex}{8}-${hex}{4}-${version}${hex}{3}-[89abAB]${hex}{3}-${hex}{12}` },
  ]),
  ["ipvanyaddress", { pattern: `(?:${ipv4}|${ipv6})` }],
  ["ipvanyinterface", { pattern: `(?:${ipv4WithLength}|${ipv6WithLength})` }],
  ["ipvanynetwork", { pattern: `(?:${ipv4WithLength}|${ipv6WithLength})` }],
  ["ipv4interface", { pattern: ipv4WithLength }],
  ["ipv6interface", { pattern: ipv6WithLength }],
  // Whether bits behind the prefix are set is not looked at.
  ["ipv4network", { pattern: ipv4WithLength }],
  ["ipv6network", { pattern: ipv6WithLength }],
  ["base64", { pattern: base64 }],
]);

const known = new Map<string, Format>([
  ...ownFormats,
  ["date", { pattern: date, widest: widest.date }],
  ["time", { pattern: clock + zone, widest: widest.time }],
  ["date-time", { pattern: `${date}[tT]${clock}${zone}`, widest: widest.dateTime }],
  ["email", { pattern: email, widest: widest.email }],
  ["hostname", { pattern: `${label}(?:\\.${label})*`, maxLength: 253, widest: widest.hostname }],
  ["ipv4", { pattern: ipv4 }],
  ["ipv6", { pattern: `(?:${ipv6})`, widest: widest.ipv6 }],
  ["uuid", { pattern: `${hex}{8}-(?:${hex}{4}-){3}${hex}{12}`, widest: widest.uuid }],
  ["duration", { pattern: duration, widest: widest.duration }],
  ["uri", { pattern: uri, widest: widest.uri }],
  ["uri-reference", { pattern: uriReference, widest: widest.uriReference }],
  ["uri-template", { pattern: uriTemplate, widest: widest.uriTemplate }],
  ["url", { pattern: url, widest: widest.url }],
  ["byte", { pattern: base64, widest: widest.byte }],
  ["iso-time", { pattern: `${clock}(?:${zone})?`, widest: widest.time }],
  ["iso-date-time", { pattern: `${date}[tT ]${clock}(?:${zone})?`, widest: widest.dateTime }],
  ["regex", { pattern: regex, widest: "[\\s\\S]*" }],
  ["json-pointer", { pattern: "(?:/(?:[^~/]|~0|~1)*)*" }],
  ["json-pointer-uri-fragment", { pattern: `#(?:/${pointerCharacter}*)*` }],
  ["relative-json-pointer", { pattern: "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~0|~1)*)*)" }],
]);

/** At most so many groups of an IPv6 address, or none. */
function groupsBefore(most: number): string {
  return most === 0 ? "" : `(?:(?:${group}:){0,${most - 1}}${group})?`;
}

/** As the validator does. @returns true also for what is no format */
export function isOfFormat(name: string, text: string): boolean {
  const own = ownFormats.get(name);
  if (own !== undefined) return new RegExp(`^(?:${own.pattern})$`, "u").test(text);
  const format = known.has(name) ? fullFormats[name as FormatName] : true;
  if (format instanceof RegExp) return format.test(text);
  const judge = typeof format === "object" ? format.validate : format;
  return typeof judge === "function" ? (judge as (text: string) => boolean)(text) : true;
}

export function formatOf(name: string): Format | "annotation" {
  return known.get(name) ?? "annotation";
}
