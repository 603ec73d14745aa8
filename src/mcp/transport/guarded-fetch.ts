/**
 * `fetch` for a URL that a request named: it reaches public addresses only. What the name resolves to is
 * checked where the socket connects, so that a name that resolves differently the second time gains
 * nothing, and each connection is a new one. It follows no redirect by itself.
 */

import { BlockList, isIP, type LookupFunction } from "node:net";
import { lookup as lookupName, type LookupAddress } from "node:dns";
import { callbackify } from "node:util";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { FermataError } from "../../errors.ts";
import { requestOnce } from "../../patient-fetch.ts";

/** Special-purpose IPv4 blocks (IANA): own networks, loopback, link-local with its metadata, multicast, … */
const blocked4: readonly [network: string, prefix: number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** Within the only public IPv6 block: those that carry or stand for other addresses. */
const blocked6: readonly [network: string, prefix: number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const blocked = new BlockList();
for (const [network, prefix] of blocked4) blocked.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of blocked6) blocked.addSubnet(network, prefix, "ipv6");
/** Everything else is loopback, local, mapped IPv4 or unassigned. */
const public6 = new BlockList();
public6.addSubnet("2000::", 3, "ipv6");

/** @param address as DNS or a URL gives it, without brackets; anything that is no address is not public */
export function isPublicAddress(address: string): boolean {
  const [plain = ""] = address.split("%");
  switch (isIP(plain)) {
    case 4:
      return !blocked.check(plain, "ipv4");
    case 6:
      return public6.check(plain, "ipv6") && !blocked.check(plain, "ipv6");
    default:
      return false;
  }
}

export interface AddressRules {
  isAllowed(address: string): boolean;
  /** Plain http too. */
  allowHttp: boolean;
  resolve(name: string): Promise<LookupAddress[]>;
}

export const publicOnly: AddressRules = {
  isAllowed: isPublicAddress,
  allowHttp: false,
  resolve: (name) =>
    new Promise((resolve, reject) => {
      lookupName(name, { all: true }, (error, addresses) =>
        error === null ? resolve(addresses) : reject(error),
      );
    }),
};

/** @throws FermataError invalid_value, without a word to the network */
export function checkUrl(text: string, { isAllowed, allowHttp }: AddressRules): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refused("is not a URL");
  }
  if (url.protocol !== "https:" && !(allowHttp && url.protocol === "http:"))
    throw refused("must begin with https://");
  if (url.username !== "" || url.password !== "")
    throw refused("must not hold a user name or password");
  const host = hostOf(url);
  if (isIP(host) !== 0 && !isAllowed(host)) throw refused("leads to a private address");
  return url;
}

export function guardedFetch(rules: AddressRules): FetchLike {
  // A pooled socket would skip the lookup.
  const connection = { agent: false, lookup: guardedLookup(rules) } as const;
  return async (target, init = {}) =>
    requestOnce(checkUrl(String(target), rules), init, connection);
}

/** Of what a name resolves to; the socket connects to one of these addresses. */
function guardedLookup({ isAllowed, resolve }: AddressRules): LookupFunction {
  const find = callbackify(async (name: string): Promise<LookupAddress[]> => {
    const addresses = await resolve(name);
    // One bad address spoils the name: it was put there on purpose.
    const isBad = addresses.length === 0 || addresses.some(({ address }) => !isAllowed(address));
    if (isBad) throw refused("leads to a private address");
    return addresses;
  });
  return (name, options, callback) =>
    find(name, (error, addresses) => {
      if (error !== null) callback(error, "", 0);
      else if (options.all === true) callback(null, addresses);
      else callback(null, addresses[0]!.address, addresses[0]!.family);
    });
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function refused(problem: string): FermataError {
  return new FermataError(
    "invalid_value",
    `"server_url" ${problem}. Send the https URL of a server on the public internet.`,
    { param: "server_url" },
  );
}
