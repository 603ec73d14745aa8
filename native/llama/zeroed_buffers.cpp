#include "llama/zeroed_buffers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/system_pages.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fermata {

#if defined(__linux__)

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;

decltype(ggml_backend_buffer_type_i::alloc_buffer) allocate;

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
    const std::span<std::byte> bytes(static_cast<std::byte*>(buffer->context), buffer->size);
    const std::span<std::byte> pages = whole_pages(bytes, system_page());
    if (value != 0 || pages.empty() || madvise(pages.data(), pages.size(), MADV_DONTNEED) != 0) {
        std::memset(bytes.data(), value, bytes.size());
        return;
    }
    const auto before = static_cast<std::size_t>(pages.data() - bytes.data());
    std::memset(bytes.data(), 0, before);
    std::memset(pages.data() + pages.size(), 0, bytes.size() - before - pages.size());
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
