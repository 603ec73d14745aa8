#include "llama/paged_state.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ggml-backend.h"
#include "ggml.h"

namespace fermata {

namespace {

// In front of the head's numbers, and then the runs.
struct HeadSizes {
    std::uint32_t runs = 0;
    std::uint32_t number_bytes = 0;
};

// More than any model's strips differ.
constexpr std::uint32_t kMostRuns = 1 << 16;
constexpr std::size_t kMostNumberBytes = std::numeric_limits<std::uint32_t>::max();

bool is_in_host_memory(const ggml_tensor* tensor) {
    const ggml_backend_buffer_t buffer =
        tensor->view_src != nullptr ? tensor->view_src->buffer : tensor->buffer;
    return ggml_backend_buffer_is_host(buffer);
}

std::byte* address_in(const ggml_tensor* tensor, std::size_t offset) {
    return static_cast<std::byte*>(tensor->data) + offset;
}

// Positions [position, returned) of a sequence are in one page.
std::int32_t end_of_page(std::int32_t position, std::int32_t length) {
    return std::min(position / kPagePositions * kPagePositions + kPagePositions, length);
}

std::size_t page_of(std::int32_t position) {
    return 1 + static_cast<std::size_t>(position / kPagePositions);
}

// Where, in the page, the position's part of a strip begins.
std::size_t place_in_page(std::int32_t position, std::int32_t length, std::size_t before,
                          std::size_t bytes) {
    const std::int32_t first = position / kPagePositions * kPagePositions;
    const auto in_page = static_cast<std::size_t>(end_of_page(position, length) - first);
    return before * in_page + static_cast<std::size_t>(position - first) * bytes;
}

}  // namespace

void StatePieces::write(const void* bytes, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(bytes);
    numbers_.insert(numbers_.end(), from, from + size);
}

void StatePieces::write_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) {
    pieces_.push_back(
        {.tensor = tensor, .offset = offset, .size = size, .numbers = numbers_.size()});
    tensor_bytes_ += size;
}

// Every strip comes in the same pieces, one for each range of cells that the sequence has; the
// first one, of keys, is all that comes before further numbers.
PagedSize StatePieces::measure(std::int32_t length, std::size_t more) {
    runs_.clear();
    more_ = more;
    const auto positions = static_cast<std::size_t>(length);
    if (pieces_.empty() || length <= 0) return {};
    if (numbers_.size() + more > kMostNumberBytes) return {};
    const auto in_first = [this](const Piece& piece) {
        return piece.tensor == pieces_.front().tensor && piece.numbers == pieces_.front().numbers;
    };
    pieces_of_strip_ =
        static_cast<std::size_t>(std::ranges::find_if_not(pieces_, in_first) - pieces_.begin());
    if (pieces_.size() % pieces_of_strip_ != 0) return {};
    const std::span<const Piece> all(pieces_);
    const std::span<const Piece> first = all.first(pieces_of_strip_);
    std::size_t first_bytes = 0;
    for (const Piece& piece : first)
        first_bytes += piece.size;
    if (first_bytes % positions != 0) return {};
    for (std::size_t at = 0; at < all.size(); at += pieces_of_strip_)
        if (!add_strip(all.subspan(at, pieces_of_strip_), first, first_bytes / positions, length))
            return {};
    std::size_t position = 0;
    for (const StripRun& run : runs_)
        position += std::size_t{run.bytes} * run.strips;
    return {.head = sizeof(HeadSizes) + runs_.size() * sizeof(StripRun) + numbers_.size() + more,
            .position = position,
            .length = length};
}

bool StatePieces::add_strip(std::span<const Piece> strip, std::span<const Piece> first,
                            std::size_t first_row, std::int32_t length) {
    std::size_t bytes = 0;
    for (const Piece& piece : strip)
        bytes += piece.size;
    const auto positions = static_cast<std::size_t>(length);
    if (bytes == 0 || bytes % positions != 0) return false;
    const std::size_t row = bytes / positions;
    for (std::size_t i = 0; i < strip.size(); ++i)
        if (first[i].size % first_row != 0 || strip[i].size != first[i].size / first_row * row)
            return false;
    if (runs_.empty() || runs_.back().bytes != row)
        runs_.push_back({.bytes = static_cast<std::uint32_t>(row)});
    ++runs_.back().strips;
    return runs_.size() <= kMostRuns;
}

SavedCells StatePieces::copy(const PagedSize& size, const SavedCells& like, std::int32_t common) {
    SavedCells saved(size, like, common);
    const HeadSizes sizes{.runs = static_cast<std::uint32_t>(runs_.size()),
                          .number_bytes = static_cast<std::uint32_t>(numbers_.size() + more_)};
    std::byte* head = saved.page(0).data();
    std::memcpy(head, &sizes, sizeof(sizes));
    std::memcpy(head + sizeof(sizes), runs_.data(), runs_.size() * sizeof(StripRun));
    std::memcpy(head + sizeof(sizes) + runs_.size() * sizeof(StripRun), numbers_.data(),
                numbers_.size());

    std::vector<std::byte> fetched;
    std::size_t before = 0;
    const Piece* piece = pieces_.data();
    for (const StripRun& run : runs_) {
        for (std::uint32_t strip = 0; strip < run.strips; ++strip, before += run.bytes) {
            std::int32_t position = 0;
            for (std::size_t i = 0; i < pieces_of_strip_; ++i, ++piece) {
                const std::byte* from = address_in(piece->tensor, piece->offset);
                if (!is_in_host_memory(piece->tensor)) {
                    fetched.resize(piece->size);
                    ggml_backend_tensor_get(piece->tensor, fetched.data(), piece->offset,
                                            piece->size);
                    from = fetched.data();
                }
                const auto end = position + static_cast<std::int32_t>(piece->size / run.bytes);
                while (position < end) {
                    const std::int32_t until = std::min(end, end_of_page(position, size.length));
                    const std::size_t bytes =
                        static_cast<std::size_t>(until - position) * run.bytes;
                    const std::size_t page = page_of(position);
                    const std::size_t place =
                        place_in_page(position, size.length, before, run.bytes);
                    const bool is_same =
                        saved.is_shared(page) &&
                        std::memcmp(saved.page(page).data() + place, from, bytes) == 0;
                    if (!is_same) {
                        // A page is compared from its beginning on.
                        if (saved.is_shared(page)) saved.make_own(page, place);
                        std::memcpy(saved.page(page).data() + place, from, bytes);
                    }
                    from += bytes;
                    position = until;
                }
            }
        }
    }
    return saved;
}

void PiecesReader::read(void* to, std::size_t size) {
    if (size > pieces_.numbers_.size() - numbers_)
        throw std::runtime_error("The state ends too soon.");
    std::memcpy(to, pieces_.numbers_.data() + numbers_, size);
    numbers_ += size;
}

void PiecesReader::read_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) {
    while (size > 0) {
        if (piece_ == pieces_.pieces_.size()) throw std::runtime_error("The state ends too soon.");
        const StatePieces::Piece& piece = pieces_.pieces_[piece_];
        const std::size_t bytes = std::min(size, piece.size - in_piece_);
        const std::size_t from = piece.offset + in_piece_;
        if (is_in_host_memory(piece.tensor) && is_in_host_memory(tensor)) {
            std::memcpy(address_in(tensor, offset), address_in(piece.tensor, from), bytes);
        } else {
            carried_.resize(bytes);
            ggml_backend_tensor_get(piece.tensor, carried_.data(), from, bytes);
            ggml_backend_tensor_set(tensor, carried_.data(), offset, bytes);
        }
        offset += bytes;
        size -= bytes;
        tensor_bytes_ += bytes;
        in_piece_ += bytes;
        if (in_piece_ < piece.size) continue;
        in_piece_ = 0;
        ++piece_;
    }
}

StateReader::StateReader(const SavedCells& saved) : saved_(saved), length_(saved.length()) {
    const auto refuse = [] { throw std::runtime_error("The state does not add up."); };
    const std::span<const std::byte> first = std::as_const(saved).page(0);
    HeadSizes sizes;
    if (length_ <= 0 || first.size() < sizeof(sizes)) refuse();
    std::memcpy(&sizes, first.data(), sizeof(sizes));
    if (sizes.runs > kMostRuns) refuse();
    const std::size_t run_bytes = sizes.runs * sizeof(StripRun);
    const std::size_t head = sizeof(sizes) + run_bytes + sizes.number_bytes;
    if (first.size() < head) refuse();
    runs_.resize(sizes.runs);
    if (run_bytes > 0) std::memcpy(runs_.data(), first.data() + sizeof(sizes), run_bytes);
    numbers_ = first.subspan(sizeof(sizes) + run_bytes, sizes.number_bytes);
    const std::size_t most = saved.size() / static_cast<std::size_t>(length_);
    for (const StripRun& run : runs_) {
        const std::size_t bytes = std::size_t{run.bytes} * run.strips;
        if (bytes == 0 || bytes > most - position_bytes_) refuse();
        position_bytes_ += bytes;
    }
    const PagedSize size{.head = head, .position = position_bytes_, .length = length_};
    if (size.total() != saved.size()) refuse();
    if (saved.page_count() == 1) only_page_ = first.data() + head;
}

void StateReader::read(void* to, std::size_t size) {
    if (size > numbers_.size()) throw std::runtime_error("The state ends too soon.");
    std::memcpy(to, numbers_.data(), size);
    numbers_ = numbers_.subspan(size);
    read_ += size;
}

// The page that has the position, from its first byte on.
const std::byte* StateReader::rows(std::int32_t position) const {
    if (only_page_ == nullptr) return saved_.page(page_of(position)).data();
    const std::int32_t first = position / kPagePositions * kPagePositions;
    return only_page_ + static_cast<std::size_t>(first) * position_bytes_;
}

void StateReader::read_tensor(ggml_tensor* tensor, std::size_t offset, std::size_t size) {
    const bool is_host = is_in_host_memory(tensor);
    if (!is_host) gathered_.resize(size);
    std::byte* to = is_host ? address_in(tensor, offset) : gathered_.data();
    for (std::size_t left = size; left > 0;) {
        if (run_ == runs_.size()) throw std::runtime_error("The state ends too soon.");
        const std::size_t row = runs_[run_].bytes;
        const auto wanted = static_cast<std::int64_t>(left / row);
        const auto until = static_cast<std::int32_t>(
            std::min<std::int64_t>(position_ + wanted, end_of_page(position_, length_)));
        const std::size_t bytes = static_cast<std::size_t>(until - position_) * row;
        if (bytes == 0) throw std::runtime_error("The state has rows of another size.");
        std::memcpy(to, rows(position_) + place_in_page(position_, length_, before_, row), bytes);
        to += bytes;
        left -= bytes;
        position_ = until;
        if (position_ < length_) continue;
        position_ = 0;
        before_ += row;
        if (++strip_ < runs_[run_].strips) continue;
        strip_ = 0;
        ++run_;
    }
    if (!is_host) ggml_backend_tensor_set(tensor, gathered_.data(), offset, size);
    read_ += size;
}

bool StateReader::at_end() const {
    return numbers_.empty() && run_ == runs_.size();
}

}  // namespace fermata
