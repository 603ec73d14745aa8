// A slot's state in host memory, in pages that sequences with the same beginning share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fermata {

// Positions in a page; the last one of a sequence may have fewer.
inline constexpr std::int32_t kPagePositions = 64;

// Bytes of a state in pages: what belongs to no position, and each position.
struct PagedSize {
    std::size_t head = 0;
    std::size_t position = 0;
    std::int32_t length = 0;  // positions

    std::size_t total() const { return head + position * static_cast<std::size_t>(length); }
};

// What a slot held, or a fork of it; copies share it. Only a backend of the same model, options and
// build can read it.
class SavedCells {
   public:
    SavedCells() = default;
    // One page of `size` bytes of any content. Throws std::bad_alloc.
    SavedCells(std::size_t size, std::int32_t length);
    // Page 0 is the head. Those that lie within the first `common` positions are the pages of
    // `like`, if it has such; the others have any content. Throws std::bad_alloc.
    SavedCells(const PagedSize& size, const SavedCells& like, std::int32_t common);
    // The same two without bytes, for the simulator: they may not be read.
    static SavedCells counted(std::size_t size, std::int32_t length);
    static SavedCells counted(const PagedSize& size, const SavedCells& like, std::int32_t common);

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::int32_t length() const { return length_; }  // positions

    // All bytes are those of the pages, one behind the other.
    std::size_t page_count() const { return pages_.size(); }
    std::span<const std::byte> page(std::size_t index) const;
    // Of pages that nobody shares.
    std::span<std::byte> page(std::size_t index);
    // The page came from `like`.
    bool is_shared(std::size_t index) const { return shared_[index]; }
    // Another one takes its place, with its first `kept` bytes. Throws std::bad_alloc.
    void make_own(std::size_t index, std::size_t kept);

    // Memory that sequences share is counted once. By one thread.
    std::size_t keep() const;        // it is one more that is kept: bytes that were not kept before
    std::size_t give_up() const;     // it is not kept any more: bytes that nobody keeps now
    std::size_t kept_alone() const;  // bytes that give_up() would return
    std::size_t not_kept() const;    // bytes that keep() would return
    // Of what another one with `common` positions in common would share, the bytes that are kept.
    std::size_t kept_of(std::int32_t common) const;

   private:
    struct Memory;
    struct Page;

    SavedCells(const PagedSize& size, const SavedCells& like, std::int32_t common, bool has_bytes);

    std::vector<std::shared_ptr<Page>> pages_;
    std::vector<bool> shared_;
    std::size_t size_ = 0;
    std::size_t position_bytes_ = 0;  // 0: in one page
    std::int32_t length_ = 0;
};

}  // namespace fermata
