#include "llama/zeroed_buffers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ggml-backend-impl.h"
#include "ggml-backend.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace fermata {

#if defined(__linux__)

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;

decltype(ggml_backend_buffer_type_i::alloc_buffer) allocate;

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
    auto* bytes = static_cast<std::byte*>(buffer->context);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(bytes) % page) % page;
    const std::size_t pages = (buffer->size - before) / page * page;
    const std::size_t behind = buffer->size - before - pages;
    if (value != 0 || madvise(bytes + before, pages, MADV_DONTNEED) != 0) {
        std::memset(bytes, value, buffer->size);
        return;
    }
    std::memset(bytes, 0, before);
    std::memset(bytes + before + pages, 0, behind);
}

}  // namespace

void clear_buffers_by_page() {
    ggml_backend_buffer_type_t host = ggml_backend_cpu_buffer_type();
    allocate = host->iface.alloc_buffer;
    host->iface.alloc_buffer = [](ggml_backend_buffer_type_t type, std::size_t size) {
        ggml_backend_buffer_t buffer = allocate(type, size);
        if (buffer != nullptr && size >= kLarge) buffer->iface.clear = clear;
        return buffer;
    };
}

#else

void clear_buffers_by_page() {}

#endif

}  // namespace fermata
