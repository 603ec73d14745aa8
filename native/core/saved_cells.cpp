#include "core/saved_cells.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/system_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fermata {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// From here on the system gives the memory and gets it back at once, in parts too: a heap would
// keep holes, and takes nothing back in parts.
[[maybe_unused]] constexpr std::size_t kWorthMapping = std::size_t{1} << 20;
[[maybe_unused]] constexpr std::size_t kWorthHugePages = 2 * kHugePage;

bool is_mapped([[maybe_unused]] std::size_t size) {
#if defined(__linux__)
    return size >= kWorthMapping;
#else
    return false;
#endif
}

std::size_t pages_within(std::int32_t positions) {
    return static_cast<std::size_t>(positions / kPagePositions);
}

}  // namespace

// What one save needed.
struct SavedCells::Memory {
    std::byte* bytes = nullptr;
    std::size_t mapped = 0;  // 0: from the heap

    // The first touch of each page is most of what a save takes: 22 ms of 25 for 37 MB in pages of
    // 4 KiB.
    explicit Memory(std::size_t size) {
#if defined(__linux__)
        if (is_mapped(size)) {
            const bool huge = size >= kWorthHugePages;
            mapped = size + (huge ? kHugePage : 0);
            void* start =
                mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (start == MAP_FAILED) throw std::bad_alloc();
            start_ = static_cast<std::byte*>(start);
            bytes = start_;
            if (!huge) return;
            // Where it is refused, the pages are small; those of the last part are in any case.
            const std::span<std::byte> pages = whole_pages({start_, mapped}, kHugePage);
            bytes = pages.data();
            madvise(bytes, size / kHugePage * kHugePage, MADV_HUGEPAGE);
            return;
        }
#endif
        start_ = static_cast<std::byte*>(::operator new(size));
        bytes = start_;
    }
    ~Memory() {
#if defined(__linux__)
        if (mapped > 0) {
            munmap(start_, mapped);
            return;
        }
#endif
        ::operator delete(start_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // Nobody will read this part any more, while the rest stays.
    void discard([[maybe_unused]] std::span<std::byte> part) {
#if defined(__linux__)
        if (mapped == 0) return;
        const std::span<std::byte> pages = whole_pages(part, system_page());
        if (!pages.empty()) madvise(pages.data(), pages.size(), MADV_DONTNEED);
#endif
    }

   private:
    std::byte* start_ = nullptr;
};

struct SavedCells::Page {
    std::shared_ptr<Memory> memory = {};  // null: only counted
    std::span<std::byte> bytes = {};
    std::size_t size = 0;
    std::int32_t keepers = 0;

    Page(std::shared_ptr<Memory> its_memory, std::span<std::byte> its_bytes, std::size_t its_size)
        : memory(std::move(its_memory)), bytes(its_bytes), size(its_size) {}
    ~Page() {
        if (memory.use_count() > 1) memory->discard(bytes);
    }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;
};

SavedCells::SavedCells(const PagedSize& size, const SavedCells& like, std::int32_t common,
                       bool has_bytes)
    : size_(size.total()), position_bytes_(size.position), length_(size.length) {
    const auto count = 1 + static_cast<std::size_t>(length_ + kPagePositions - 1) / kPagePositions;
    const std::size_t whole = like.position_bytes_ == position_bytes_ && position_bytes_ > 0
                                  ? pages_within(std::min({common, like.length_, length_}))
                                  : 0;
    const auto size_of = [&](std::size_t index) {
        if (index == 0) return size.head;
        const auto before = static_cast<std::int32_t>(index - 1) * kPagePositions;
        return position_bytes_ *
               static_cast<std::size_t>(std::min(kPagePositions, length_ - before));
    };
    std::size_t own = 0;
    for (std::size_t index = 0; index < count; ++index)
        if (index == 0 || index > whole) own += size_of(index);
    // What is on the heap goes back as a whole: each page has its own, so that it goes with it.
    const bool in_one = has_bytes && is_mapped(own);
    std::shared_ptr<Memory> memory = in_one ? std::make_shared<Memory>(own) : nullptr;
    // Pages of positions begin where the system's pages do, as long as their size is a multiple.
    std::byte* next = in_one ? memory->bytes : nullptr;
    pages_.resize(count);
    shared_.resize(count);
    for (std::size_t at = 1; at <= count; ++at) {
        const std::size_t index = at % count;
        shared_[index] = index > 0 && index <= whole;
        if (shared_[index]) {
            pages_[index] = like.pages_[index];
            continue;
        }
        const std::size_t bytes = size_of(index);
        if (has_bytes && !in_one) {
            memory = std::make_shared<Memory>(bytes);
            next = memory->bytes;
        }
        pages_[index] = std::make_shared<Page>(
            memory, has_bytes ? std::span(next, bytes) : std::span<std::byte>(), bytes);
        if (has_bytes) next += bytes;
    }
}

SavedCells::SavedCells(const PagedSize& size, const SavedCells& like, std::int32_t common)
    : SavedCells(size, like, common, true) {}

SavedCells::SavedCells(std::size_t size, std::int32_t length)
    : shared_(1), size_(size), length_(length) {
    const auto memory = std::make_shared<Memory>(size);
    pages_.push_back(std::make_shared<Page>(memory, std::span(memory->bytes, size), size));
}

SavedCells SavedCells::counted(std::size_t size, std::int32_t length) {
    SavedCells cells;
    cells.pages_.push_back(std::make_shared<Page>(nullptr, std::span<std::byte>(), size));
    cells.shared_.resize(1);
    cells.size_ = size;
    cells.length_ = length;
    return cells;
}

SavedCells SavedCells::counted(const PagedSize& size, const SavedCells& like, std::int32_t common) {
    return SavedCells(size, like, common, false);
}

std::span<const std::byte> SavedCells::page(std::size_t index) const {
    return pages_[index]->bytes;
}

std::span<std::byte> SavedCells::page(std::size_t index) {
    return pages_[index]->bytes;
}

void SavedCells::make_own(std::size_t index, std::size_t kept) {
    const std::span<const std::byte> from = page(index);
    const auto memory = std::make_shared<Memory>(from.size());
    std::ranges::copy(from.first(kept), memory->bytes);
    pages_[index] =
        std::make_shared<Page>(memory, std::span(memory->bytes, from.size()), from.size());
    shared_[index] = false;
}

std::size_t SavedCells::keep() const {
    std::size_t bytes = 0;
    for (const auto& page : pages_)
        if (page->keepers++ == 0) bytes += page->size;
    return bytes;
}

std::size_t SavedCells::give_up() const {
    std::size_t bytes = 0;
    for (const auto& page : pages_)
        if (--page->keepers == 0) bytes += page->size;
    return bytes;
}

std::size_t SavedCells::kept_alone() const {
    std::size_t bytes = 0;
    for (const auto& page : pages_)
        if (page->keepers == 1) bytes += page->size;
    return bytes;
}

std::size_t SavedCells::not_kept() const {
    std::size_t bytes = 0;
    for (const auto& page : pages_)
        if (page->keepers == 0) bytes += page->size;
    return bytes;
}

std::size_t SavedCells::kept_of(std::int32_t common) const {
    if (position_bytes_ == 0) return 0;
    std::size_t bytes = 0;
    for (std::size_t index = pages_within(std::min(common, length_)); index > 0; --index)
        if (pages_[index]->keepers > 0) bytes += pages_[index]->size;
    return bytes;
}

}  // namespace fermata
