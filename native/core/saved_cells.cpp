#include "core/saved_cells.h"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fermata {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kWorthHugePages = 4 * kHugePage;

}  // namespace

// The first touch of each page is most of what a save takes: 22 ms of 25 for 37 MB in pages of
// 4 KiB.
SavedCells::SavedCells(std::size_t size, std::int32_t length) : size_(size), length_(length) {
    if (size < kWorthHugePages) {
        bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
        return;
    }
    constexpr std::align_val_t kAligned{kHugePage};
    void* bytes = ::operator new(size, kAligned);
    bytes_ = std::shared_ptr<std::byte[]>(
        static_cast<std::byte*>(bytes), [](std::byte* mine) { ::operator delete(mine, kAligned); });
#if defined(__linux__)
    // Where it is refused, the pages are small; those of the last part are in any case.
    madvise(bytes, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

SavedCells SavedCells::counted(std::size_t size, std::int32_t length) {
    SavedCells cells;
    cells.size_ = size;
    cells.length_ = length;
    return cells;
}

}  // namespace fermata
