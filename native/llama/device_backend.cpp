#include "llama/device_backend.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

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

// A backend that is a library is linked with ggml as a library, while ours is in the addon.
void catch_log_of(const char* library) {
#ifndef _WIN32
    void* loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) return;
    if (void* set_log = dlsym(loaded, "ggml_log_set"))
        catch_log(reinterpret_cast<decltype(&ggml_log_set)>(set_log));
#else
    (void)library;
#endif
}

DeviceBackend look() {
    const LogCapture log;
    initialize_llama();
    DeviceBackend found{FERMATA_BACKEND, {}};
    const char* library = std::getenv("FERMATA_BACKEND_LIBRARY");
    if (library != nullptr && *library != '\0') {
        found.name = name_in(library);
        catch_log_of(library);
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
