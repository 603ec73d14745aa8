// Weights in blocks of 256 numbers, which are unpacked as they are multiplied (repacked_q4_k.h),
// with rows of Q8_K.
#pragma once

#include <algorithm>

#include "ggml-cpu-impl.h"
#include "kernels/product.h"
#include "kernels/rounding.h"
#include "quants.h"

namespace fermata::products {

template <typename Weights>
struct BlocksOf256 {
    using Block = typename Weights::Block;
    static constexpr std::int64_t kColumns = Weights::kColumns;

    static std::size_t row_bytes(std::int64_t width) { return width / QK_K * sizeof(block_q8_K); }
    static std::size_t scratch_bytes(std::int64_t) { return 0; }

    static void round_rows(const Product& product, int thread, int threads) {
        auto* to = static_cast<block_q8_K*>(product.rounded);
        const std::int64_t blocks = product.width / QK_K;
        const std::int64_t all = product.row_count * blocks;
        for (std::int64_t i = all * thread / threads; i < all * (thread + 1) / threads; ++i) {
            const float* from = product.in.at(i / blocks) + i % blocks * QK_K;
            to[i].d = round_256(from, to[i].qs, to[i].bsums);
        }
    }

    static void run(const Product& product, std::int64_t begin, std::int64_t end, void*) {
        const std::int64_t blocks = product.width / QK_K;
        const auto bytes = static_cast<std::int64_t>(sizeof(Block)) * blocks;
        const std::int64_t step =
            std::max<std::int64_t>(1, kWeightBytes / bytes) * Weights::kColumns;
        for (std::int64_t column = begin; column < end; column += step)
            run_rows(product, column, std::min(column + step, end));
    }

    static void run_rows(const Product& product, std::int64_t begin, std::int64_t end) {
        const std::int64_t blocks = product.width / QK_K;
        const auto* weights = static_cast<const Block*>(product.weights);
        const block_q8_K* rows[kTileRows];
        float* out[kTileRows];
        for (std::int64_t first = 0; first < product.row_count; first += kTileRows) {
            const std::int64_t count = std::min<std::int64_t>(kTileRows, product.row_count - first);
            for (int r = 0; r < count; ++r)
                rows[r] = static_cast<const block_q8_K*>(product.rounded) + (first + r) * blocks;
            with_rows(count, [&](auto exact) {
                for (std::int64_t column = begin; column < end; column += Weights::kColumns) {
                    for (int r = 0; r < count; ++r)
                        out[r] = product.out.at(first + r) + column;
                    Weights::template multiply<exact>(weights + column / Weights::kColumns * blocks,
                                                      static_cast<int>(blocks), rows, out);
                }
            });
        }
    }
};

}  // namespace fermata::products
