// What the engine computes on beside the processor.
#pragma once

#include <string>

namespace fermata {

// "cuda", "metal" or "vulkan", as it was compiled or as FERMATA_BACKEND_LIBRARY names a library of
// llama.cpp's; "cpu": nothing. Call it before anything else of this folder: the first call loads
// that library and looks for devices.
const std::string& device_backend();

// Why there are no devices, in llama.cpp's words; empty if it does not say.
const std::string& device_problem();

}  // namespace fermata
