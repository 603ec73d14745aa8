import { expect, it } from "vitest";
import { missingDevice } from "../../../src/engine/missing-device.ts";

const device = { name: "CUDA0", description: "a fake", freeBytes: 1, totalBytes: 2 };

it("a build for the CPU misses none, and one for a GPU none where there is one", () => {
  expect(missingDevice({ backend: "cpu", devices: () => [], deviceProblem: "" })).toBeNull();
  expect(missingDevice({ backend: "cuda", devices: () => [device], deviceProblem: "" })).toBeNull();
});

it("one for a GPU says why it finds none, and what to do", () => {
  const missing = missingDevice({
    backend: "cuda",
    devices: () => [],
    deviceProblem: "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
  });
  expect(missing?.what).toBe(
    "this build computes on CUDA and finds no device (ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected): the CPU does all",
  );
  expect(missing?.remedy).toContain("nvidia-smi");
  const vulkan = missingDevice({ backend: "vulkan", devices: () => [], deviceProblem: "" });
  expect(vulkan?.what).toBe("this build computes on Vulkan and finds no device: the CPU does all");
  expect(vulkan?.remedy).toContain("GGML_VK_VISIBLE_DEVICES=0");
});
