// A slot's state in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace fermata {

// What a slot held, or a fork of it; copies share it. Only a backend of the same model, options and
// build can read it.
class SavedCells {
   public:
    SavedCells() = default;
    // `size` bytes of any content. Throws std::bad_alloc.
    SavedCells(std::size_t size, std::int32_t length);
    // Has a size and no bytes, for the simulator: bytes() may not be read.
    static SavedCells counted(std::size_t size, std::int32_t length);

    std::span<std::byte> bytes() { return {bytes_.get(), size_}; }
    std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::int32_t length() const { return length_; }  // positions

   private:
    std::shared_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
    std::int32_t length_ = 0;
};

}  // namespace fermata
