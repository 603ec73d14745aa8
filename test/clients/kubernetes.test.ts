// The manifests for Kubernetes: against its own schemas, by a program that has them, and against what Fermata does.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { pythonWith } from "../support/python.ts";

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const python = pythonWith("kubernetes_validate");

const run = (...args: string[]): string => execFileSync(python!, args, { encoding: "utf8" });
const file = (name: string): string => path(`../../packaging/kubernetes/${name}`);

// oxlint-disable-next-line typescript/no-explicit-any
type Manifest = any;

function manifests(name: string): Manifest[] {
  const script =
    "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
  return JSON.parse(run("-c", script, file(name))) as Manifest[];
}

describe.skipIf(python === undefined)(
  "packaging/kubernetes (skipped without Python and pip)",
  () => {
    test("fermata.yaml fits Kubernetes' schemas, and has no field that they do not know", () => {
      const said = run("-m", "kubernetes_validate", "--strict", file("fermata.yaml"));
      const passed = [...said.matchAll(/passed for resource (\S+) against/g)].map(
        ([, name]) => name,
      );
      expect(passed).toEqual([
        "statefulset/fermata",
        "service/fermata-replicas",
        "service/fermata",
        "poddisruptionbudget/fermata",
      ]);
    });

    test("selectors, ports, probes and times fit together and fit Fermata", () => {
      const [set, replicas, service, budget] = manifests("fermata.yaml");
      const [pool, route] = manifests("inference-pool.yaml");
      const { metadata, spec } = set.spec.template;
      for (const selector of [
        set.spec.selector.matchLabels,
        replicas.spec.selector,
        service.spec.selector,
        budget.spec.selector.matchLabels,
        pool.spec.selector.matchLabels,
      ])
        expect(metadata.labels).toMatchObject(selector);
      expect(set.spec.serviceName).toBe(replicas.metadata.name);
      // A pod that leaves still ends its answers, and the proxy must find it for them.
      expect(replicas.spec.publishNotReadyAddresses).toBe(true);
      // FERMATA_PORT of the Service of that name would be read as --port.
      expect(spec.enableServiceLinks).toBe(false);
      const [container] = spec.containers;
      const [port] = container.ports;
      expect(pool.spec.targetPorts).toEqual([{ number: port.containerPort }]);
      for (const { targetPort } of [...replicas.spec.ports, ...service.spec.ports])
        expect(targetPort).toBe(port.name);
      expect(container.startupProbe.httpGet).toEqual({ path: "/health", port: port.name });
      expect(container.readinessProbe.httpGet).toEqual({ path: "/ready", port: port.name });
      expect(container.livenessProbe.tcpSocket).toEqual({ port: port.name });
      expect(route.spec.rules[0].backendRefs).toEqual([
        { group: pool.apiVersion.split("/")[0], kind: pool.kind, name: pool.metadata.name },
      ]);

      const variables = new Map<string, Manifest>(
        container.env.map((variable: Manifest) => [variable.name, variable]),
      );
      expect(variables.get("FERMATA_REPLICA").valueFrom.fieldRef.fieldPath).toBe("metadata.name");
      const times = variables.get("FERMATA_PROCESS_TIMEOUT").value;
      const [, notice, drain] = /^notice=(\d+),drain=(\d+)$/.exec(times)!.map(Number);
      // More than a server takes to close behind them.
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(notice! + drain! + 18);
      // Readiness has failed by then.
      const { periodSeconds, failureThreshold } = container.readinessProbe;
      expect(periodSeconds * failureThreshold).toBeLessThan(notice!);
      const serve = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
      const help = execFileSync(process.execPath, [serve, "serve", "--help"], { encoding: "utf8" });
      for (const name of variables.keys())
        expect(help).toContain(name.replace("FERMATA_", "--").toLowerCase().replaceAll("_", "-"));
    });
  },
);
