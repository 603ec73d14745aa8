// What a build for CUDA needs beside the compiler: NVIDIA's toolkit. Its compiler and libraries are also on
// PyPI, which is enough to compile on a machine without a GPU (--fetch-tools).
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./paths.mjs";
import { SetupError, timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { findProgram } from "./toolchain.mjs";

const version = "13.5.37";
const packages = [
  `nvidia-cuda-nvcc==${version}`,
  `nvidia-cuda-runtime==${version}`,
  `nvidia-cuda-crt==${version}`,
  `nvidia-nvvm==${version}`,
  "nvidia-cuda-cccl==13.3.5.0.6",
  "nvidia-cublas==13.10.0.20",
];
const fetched = join(cacheDir, `cuda-${version}`);

/** The wheels' libraries have their version in the name, and linkers look for the name without it. */
function nameLibraries(toolkit) {
  for (const name of ["cudart", "cublas", "cublasLt"])
    symlinkSync(`lib${name}.so.13`, join(toolkit, "lib", `lib${name}.so`));
  symlinkSync("lib", join(toolkit, "lib64"));
}

async function fetchToolkit() {
  mkdirSync(cacheDir, { recursive: true });
  const incoming = mkdtempSync(join(cacheDir, "incoming-"));
  try {
    await timed("Fetching CUDA's compiler and libraries with pip (600 MB)", () =>
      runOrFail("pip install", "python3", [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        incoming,
        ...packages,
      ]),
    );
    const toolkit = join(incoming, "nvidia/cu13");
    nameLibraries(toolkit);
    rmSync(fetched, { recursive: true, force: true });
    renameSync(toolkit, fetched);
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
}

function findToolkit() {
  const given = [process.env.CUDA_PATH, process.env.CUDA_HOME].filter(Boolean);
  return [...given, "/usr/local/cuda", "/opt/cuda"].find((folder) =>
    existsSync(join(folder, "bin/nvcc")),
  );
}

/** Options for CMake. @throws SetupError that says what is missing and where to get it */
export async function findCudaTools({ fetchTools }) {
  const problems = [];
  let toolkit = findToolkit();
  if (!toolkit && !findProgram("nvcc") && !process.env.CUDACXX) {
    if (fetchTools && !existsSync(fetched)) await fetchToolkit();
    if (existsSync(fetched)) toolkit = fetched;
    else problems.push("NVIDIA's CUDA toolkit (nvcc): not found");
  }
  // ggml asks the GPU which code it wants.
  if (!existsSync("/proc/driver/nvidia/gpus") && !process.env.CUDAARCHS)
    problems.push(
      "the architecture of the GPU, since none is here to be asked: set CUDAARCHS, as 80 for A100, 86 for RTX 30, 89 for RTX 40, 90 for H100, 120 for RTX 50",
    );
  if (problems.length > 0) {
    throw new SetupError(
      `A build for CUDA needs what is not here:\n- ${problems.join("\n- ")}\n\n` +
        "Toolkit: https://developer.nvidia.com/cuda-downloads; set CUDA_PATH if it is in a folder of its own.\n" +
        "Without it, --fetch-tools takes compiler and libraries from PyPI (Linux; npm run setup -- --backend cuda --fetch-tools).",
    );
  }
  if (!toolkit) return [];
  return [
    `--CDCUDAToolkit_ROOT=${toolkit}`,
    `--CDCMAKE_CUDA_COMPILER=${join(toolkit, "bin/nvcc")}`,
  ];
}
