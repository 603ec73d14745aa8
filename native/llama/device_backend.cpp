#include "llama/device_backend.h"

#include <cstdlib>
#include <filesystem>

#include "ggml-backend.h"
#include "llama/log.h"
#include "llama/weight_placement.h"

namespace fermata {

namespace {

struct DeviceBackend {
    std::string name;
    std::string problem;
};

// Of libggml-vulkan.so: vulkan.
std::string name_in(const char* library) {
    const std::string file = std::filesystem::path(library).stem().string();
    const std::size_t at = file.rfind("ggml-");
    return at == std::string::npos ? file : file.substr(at + 5);
}

DeviceBackend look() {
    const LogCapture log;
    initialize_llama();
    DeviceBackend found{FERMATA_BACKEND, {}};
    const char* library = std::getenv("FERMATA_BACKEND_LIBRARY");
    if (library != nullptr && *library != '\0') {
        found.name = name_in(library);
        ggml_backend_load(library);
    }
    if (devices().empty()) found.problem = log.errors_or("");
    return found;
}

const DeviceBackend& found() {
    static const DeviceBackend backend = look();
    return backend;
}

}  // namespace

const std::string& device_backend() {
    return found().name;
}

const std::string& device_problem() {
    return found().problem;
}

}  // namespace fermata
