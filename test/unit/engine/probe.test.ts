import { expect, test } from "vitest";
import { probeEnvironment } from "../../../src/engine/probe.ts";

test("a trial load of somebody's file is told no secrets and takes no options of Node", () => {
  const given = {
    PATH: "/bin",
    CUDA_VISIBLE_DEVICES: "1",
    FERMATA_API_KEY: "k",
    HF_TOKEN: "t",
    AWS_SECRET_ACCESS_KEY: "s",
    NODE_OPTIONS: "--require ./x.js",
  };
  expect(probeEnvironment(given)).toEqual({ PATH: "/bin", CUDA_VISIBLE_DEVICES: "1" });
});
