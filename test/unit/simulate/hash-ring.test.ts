// Where HAProxy 2.6 with packaging/haproxy.cfg sent requests, recorded: the simulator sends them there too.
import { expect, test } from "vitest";
import { HashRing, prefixKey } from "../../../scripts/simulate/model/hash-ring.mjs";

const servers = () => ["r1", "r2", "r3"].map((name) => ({ name, isAlive: true, served: 0 }));
const keyOfKind = (kind: number): string => prefixKey(`You are of kind ${kind}.`);

test("new conversations go to the replica that HAProxy chooses by their system message", () => {
  const ring = new HashRing(servers());
  const chosen = Array.from({ length: 24 }, (_, kind) => ring.choose(keyOfKind(kind), 150)?.name);
  expect(chosen.join(" ")).toBe(
    "r1 r2 r3 r2 r3 r1 r2 r3 r3 r3 r1 r3 r3 r3 r1 r2 r3 r2 r2 r2 r1 r3 r3 r1",
  );
});

test("requests of one prefix that are under way together go past full replicas as with HAProxy", () => {
  const ring = new HashRing(servers());
  const chosen = Array.from({ length: 9 }, () => {
    const server = ring.choose(keyOfKind(0), 150)!;
    server.served += 1;
    return server.name;
  });
  expect(chosen.join(" ")).toBe("r1 r2 r2 r1 r2 r1 r2 r1 r2");
});

test("a prefix whose replica died goes to another, and comes back with it", () => {
  const all = servers();
  const ring = new HashRing(all);
  all[0]!.isAlive = false;
  expect(ring.choose(keyOfKind(0), 0)?.name).toBe("r2");
  all[0]!.isAlive = true;
  expect(ring.choose(keyOfKind(0), 0)?.name).toBe("r1");
});
