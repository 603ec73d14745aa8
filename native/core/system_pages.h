// The pages in which the system gives memory and takes it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace fermata {

#if defined(__linux__)
// 4 KiB on most machines; 16 or 64 KiB on some of ARM.
inline std::size_t system_page() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}
#endif

// Those that lie within `bytes`. What the system is told of a part of a page, it does to all of it.
inline std::span<std::byte> whole_pages(std::span<std::byte> bytes, std::size_t page) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    const std::size_t before = (page - address % page) % page;
    if (bytes.size() < before) return {};
    return bytes.subspan(before, (bytes.size() - before) / page * page);
}

}  // namespace fermata
