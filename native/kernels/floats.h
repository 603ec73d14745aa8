// Products of weights in single precision, which are the routers of mixtures of experts. ggml adds
// the products of one row up in another order than those of several; here there is one order.
#pragma once

#include "kernels/simd.h"

#ifdef FERMATA_SIMD

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/product.h"

namespace fermata::products {

struct Floats {
    static constexpr std::int64_t kColumns = 4;
    // With as many sums for each column, the registers hold them and the operands.
    static constexpr int kRows = simd::kLanes / 4;
    // Larger matrices of such weights are ggml's.
    static constexpr std::int64_t kMostColumns = 1024;

    static std::size_t row_bytes(std::int64_t) { return 0; }
    static std::size_t scratch_bytes(std::int64_t) { return 0; }
    static void round_rows(const Product&, int, int) {}

    static void run(const Product& product, std::int64_t begin, std::int64_t end, void*) {
        for (std::int64_t column = begin; column < end; column += kColumns) {
            with_rows<kColumns>(std::min(kColumns, end - column), [&](auto columns) {
                for (std::int64_t row = 0; row < product.row_count; row += kRows)
                    with_rows<kRows>(
                        std::min<std::int64_t>(kRows, product.row_count - row),
                        [&](auto rows) { run_tile<rows, columns>(product, row, column); });
            });
        }
    }

   private:
    template <int R, int C>
    static void run_tile(const Product& product, std::int64_t row, std::int64_t column) {
        const auto* weights = static_cast<const float*>(product.weights) + column * product.width;
        simd::Vec sums[R][C] = {};
        for (std::int64_t i = 0; i < product.width; i += simd::kLanes) {
            simd::Vec of_columns[C];
            for (int c = 0; c < C; ++c)
                of_columns[c] = simd::load(weights + c * product.width + i);
            for (int r = 0; r < R; ++r) {
                const simd::Vec of_row = simd::load(product.in.at(row + r) + i);
                for (int c = 0; c < C; ++c)
                    sums[r][c] = simd::fma(of_row, of_columns[c], sums[r][c]);
            }
        }
        for (int r = 0; r < R; ++r) {
            for (int c = 0; c < C; ++c)
                product.out.at(row + r)[column + c] = simd::sum(sums[r][c]);
        }
    }
};

}  // namespace fermata::products

#endif
