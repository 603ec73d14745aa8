#include "llama/memory_needs.h"

#include "llama-ext.h"
#include "llama.h"

namespace fermata {

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
