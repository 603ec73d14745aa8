// What llama.cpp writes of a sequence, put into pages of positions.
//
// It writes rows by layer: of each layer the keys of all positions, then so the values, and some
// numbers in between. Here the numbers are the head, and a page has its positions' part of each of
// these strips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/saved_cells.h"
#include "llama-io.h"

namespace fermata {

// Strips in a row whose positions take as many bytes each.
struct StripRun {
    std::uint32_t bytes = 0;  // of a position
    std::uint32_t strips = 0;
};

// Notes what is written instead of copying it.
class StatePieces final : public llama_io_write_i {
   public:
    void write(const void* bytes, std::size_t size) override;
    void write_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) override;
    std::size_t n_bytes() override { return numbers_.size() + tensor_bytes_; }

    // Of a sequence of so many positions, with `more` bytes of the caller's; a size of 0 if it
    // cannot be put into pages.
    PagedSize measure(std::int32_t length, std::size_t more = 0);
    // After measure(). The pages whose bytes are the same as those of `like` are shared with it.
    // The last bytes of the head, which are the caller's, have any content. Throws std::bad_alloc.
    SavedCells copy(const PagedSize& size, const SavedCells& like, std::int32_t common);

   private:
    friend class PiecesReader;
    struct Piece {
        ggml_tensor* tensor = nullptr;
        std::size_t offset = 0;
        std::size_t size = 0;
        std::size_t numbers = 0;  // bytes of numbers before it
    };

    bool add_strip(std::span<const Piece> strip, std::span<const Piece> first,
                   std::size_t first_row, std::int32_t length);

    std::vector<std::byte> numbers_;
    std::vector<Piece> pieces_;
    std::size_t tensor_bytes_ = 0;
    std::size_t pieces_of_strip_ = 0;
    std::size_t more_ = 0;
    std::vector<StripRun> runs_;
};

// Copies what StatePieces noted from where it is, for another sequence of the same context.
class PiecesReader final : public llama_io_read_i {
   public:
    // `pieces` outlives this object.
    explicit PiecesReader(const StatePieces& pieces) : pieces_(pieces) {}

    void read(void* to, std::size_t size) override;
    void read_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) override;
    std::size_t n_bytes() override { return numbers_ + tensor_bytes_; }

   private:
    const StatePieces& pieces_;
    std::size_t numbers_ = 0;  // bytes read
    std::size_t tensor_bytes_ = 0;
    std::size_t piece_ = 0;
    std::size_t in_piece_ = 0;
    std::vector<std::byte> carried_;  // for memory that is not the host's
};

// Gives back what StatePieces put into pages, which may have become one page on the way.
class StateReader final : public llama_io_read_i {
   public:
    // `saved` outlives this object. Nothing of it is trusted: what does not add up throws
    // std::runtime_error here or when it is read.
    explicit StateReader(const SavedCells& saved);

    void read(void* to, std::size_t size) override;
    void read_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) override;
    std::size_t n_bytes() override { return read_; }

    // The numbers that were not read yet, which are the caller's of StatePieces.
    std::span<const std::byte> take_rest() { return std::exchange(numbers_, {}); }
    // All of it was read.
    bool at_end() const;

   private:
    const std::byte* rows(std::int32_t position) const;

    const SavedCells& saved_;
    std::int32_t length_;
    std::vector<StripRun> runs_;
    std::span<const std::byte> numbers_;    // not read yet
    const std::byte* only_page_ = nullptr;  // of positions; null: there are more
    std::size_t position_bytes_ = 0;
    std::size_t run_ = 0;
    std::uint32_t strip_ = 0;    // of the run
    std::size_t before_ = 0;     // bytes of a position in the strips before
    std::int32_t position_ = 0;  // next of the strip
    std::size_t read_ = 0;
    std::vector<std::byte> gathered_;  // for memory that is not the host's
};

}  // namespace fermata
