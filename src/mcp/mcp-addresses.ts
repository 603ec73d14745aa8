/** Which network addresses a URL from a request may lead to: public ones. */

import { BlockList, isIP } from "node:net";

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
