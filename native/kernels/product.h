// What the kernels of matrix products have in common: the work, and how it is cut into tiles of
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace fermata::products {

inline constexpr int kTileRows = 8;
// Weights that are used for all rows before the next ones are read: half of a usual L2 cache.
inline constexpr std::int64_t kWeightBytes = 256 * 1024;

// Rows of floats: evenly spaced, or where `offsets` says (in bytes).
struct Rows {
    char* base;
    std::size_t stride;
    const std::size_t* offsets;

    float* at(std::int64_t row) const {
        return reinterpret_cast<float*>(base + (offsets ? offsets[row] : row * stride));
    }
};

// out = in x columns of weights.
struct Product {
    const void* weights;
    Rows in;
    Rows out;
    void* rounded;  // `in`, as the kernel rounds it
    std::int64_t row_count;
    std::int64_t columns;
    std::int64_t width;  // numbers of a row of `in` and of a column
};

struct Kernel {
    std::int64_t columns;                              // computed at once
    std::size_t (*row_bytes)(std::int64_t width);      // of a rounded row
    std::size_t (*scratch_bytes)(std::int64_t width);  // of a thread
    /** Rounds the rows; thread `thread` of `threads` does its share. */
    void (*round_rows)(const Product&, int thread, int threads);
    /** The columns from `begin` to `end` of all rows. */
    void (*run)(const Product&, std::int64_t begin, std::int64_t end, void* scratch);
};

template <int R>
using RowCount = std::integral_constant<int, R>;

/** work(RowCount<count>{}), count from 1 to Most. */
template <int Most = kTileRows, typename Work>
void with_rows(std::int64_t count, const Work& work) {
    [&]<int... R>(std::integer_sequence<int, R...>) {
        (void)((count == R + 1 && (work(RowCount<R + 1>{}), true)) || ...);
    }(std::make_integer_sequence<int, Most>{});
}

}  // namespace fermata::products
