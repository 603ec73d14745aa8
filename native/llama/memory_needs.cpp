#include "llama/memory_needs.h"

#include <algorithm>

#include "llama-ext.h"
#include "llama.h"

namespace fermata {

namespace {

void add_parts(MemoryParts& to, const MemoryParts& more) {
    to.weights += more.weights;
    to.cache += more.cache;
    to.compute += more.compute;
}

}  // namespace

void MemoryNeeds::add(const MemoryNeeds& other) {
    add_parts(host, other.host);
    for (const Device& more : other.devices) {
        const auto there = std::ranges::find(devices, more.name, &Device::name);
        if (there == devices.end()) {
            devices.push_back(more);
        } else {
            add_parts(there->parts, more.parts);
        }
    }
}

MemoryNeeds memory_needs(const llama_context* context) {
    const llama_model* model = llama_get_model(context);
    MemoryNeeds needs;
    needs.devices.resize(static_cast<std::size_t>(llama_model_n_devices(model)));
    const auto device_at = [model](std::size_t index) {
        return llama_model_get_device(model, static_cast<int>(index));
    };
    for (std::size_t i = 0; i < needs.devices.size(); ++i)
        needs.devices[i].name = ggml_backend_dev_name(device_at(i));
    for (const auto& [type, bytes] : llama_get_memory_breakdown(context)) {
        MemoryParts* into = &needs.host;
        const ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
        for (std::size_t i = 0; i < needs.devices.size() && !ggml_backend_buft_is_host(type); ++i) {
            if (device == device_at(i)) into = &needs.devices[i].parts;
        }
        into->weights += bytes.model;
        into->cache += bytes.context;
        into->compute += bytes.compute;
    }
    return needs;
}

}  // namespace fermata
