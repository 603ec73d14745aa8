#include "llama/rpc_server.h"

#include <atomic>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "llama/log.h"

namespace fermata {

namespace {

// The processor as a device that says how much memory it has left and gives no more. ggml's own
// calls all of the machine's memory free.
class LimitedProcessor {
   public:
    LimitedProcessor(ggml_backend_dev_t processor, std::uint64_t limit)
        : processor_(processor), limit_(limit) {
        only_ = this;
        device_ = *processor;
        device_.iface.get_memory = [](ggml_backend_dev_t, std::size_t* free, std::size_t* total) {
            *total = only_->limit_;
            *free = only_->limit_ - only_->used_.load();
        };
        device_.iface.get_buffer_type = [](ggml_backend_dev_t) { return &only_->buffers_; };
        device_.iface.init_backend = [](ggml_backend_dev_t, const char* params) {
            ggml_backend_t backend = ggml_backend_dev_init(only_->processor_, params);
            if (backend != nullptr) backend->device = &only_->device_;
            return backend;
        };
        buffers_ = *ggml_backend_dev_buffer_type(processor);
        buffers_.iface.alloc_buffer = [](ggml_backend_buffer_type_t type, std::size_t size) {
            return only_->allocate(type, size);
        };
    }

    ggml_backend_dev_t device() { return &device_; }

   private:
    ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, std::size_t size) {
        if (size > limit_ - used_.load()) return nullptr;
        const auto plain = ggml_backend_dev_buffer_type(processor_);
        ggml_backend_buffer_t buffer = plain->iface.alloc_buffer(type, size);
        if (buffer == nullptr) return nullptr;
        used_ += buffer->size;
        free_ = buffer->iface.free_buffer;
        buffer->iface.free_buffer = [](ggml_backend_buffer_t freed) {
            only_->used_ -= freed->size;
            only_->free_(freed);
        };
        return buffer;
    }

    // ggml's functions take no data of ours.
    static inline LimitedProcessor* only_ = nullptr;

    ggml_backend_dev_t processor_;
    std::uint64_t limit_;
    std::atomic<std::uint64_t> used_{0};
    ggml_backend_device device_;
    ggml_backend_buffer_type buffers_;
    void (*free_)(ggml_backend_buffer_t) = nullptr;
};

bool computes(ggml_backend_dev_t device) {
    const auto type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

}  // namespace

Error run_rpc_server(const RpcServerOptions& options) {
    initialize_llama();
    std::vector<ggml_backend_dev_t> devices;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i)
        if (computes(ggml_backend_dev_get(i))) devices.push_back(ggml_backend_dev_get(i));
    LimitedProcessor processor(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU),
                               options.memory_limit);
    if (devices.empty()) devices.push_back(processor.device());
    const std::string endpoint = options.host + ":" + std::to_string(options.port);
    ggml_backend_rpc_start_server(endpoint.c_str(), nullptr,
                                  static_cast<std::size_t>(options.threads), devices.size(),
                                  devices.data());
    return {ErrorCode::kInvalidArgument, "The RPC server cannot listen on " + endpoint + "."};
}

}  // namespace fermata
