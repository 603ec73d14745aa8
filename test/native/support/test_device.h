// Where native tests put a model's layers: on a device if FERMATA_TEST_GPU_LAYERS says so
// (scripts/checks/vulkan.mjs), else on the processor.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "llama/device_backend.h"

namespace fermata::testing {

inline std::int32_t test_gpu_layers() {
    device_backend();  // loads the library that FERMATA_BACKEND_LIBRARY names
    const char* layers = std::getenv("FERMATA_TEST_GPU_LAYERS");
    return layers == nullptr ? 0 : std::atoi(layers);
}

}  // namespace fermata::testing
