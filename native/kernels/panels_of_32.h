// Panels of weights in blocks of 32 numbers with one scale (weights_of_32.h, weights_of_eights.h).
#pragma once

#include "kernels/panels.h"
#include "kernels/rounding.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

#include "ggml-cpu-impl.h"
#include "quants.h"
#include "simd-mappings.h"

namespace fermata::products {

template <typename Weights>
struct PanelsOf32 {
    using Block = typename Weights::Block;
    static constexpr int kBlockColumns = Weights::kBlockColumns;
    static constexpr int kNumbers = 32;
    static constexpr int kQuads = kNumbers / 4;

    struct RowBlock {
        float scale;
        float sum;           // of the numbers
        std::int32_t start;  // of a sum of products: what the offset of the weights amounts to
        std::int8_t numbers[kNumbers];
    };

    struct alignas(kBytes) PanelBlock {
        std::uint8_t numbers[kQuads][kBytes];  // [quad][column][4]
        typename Weights::Scale scales[kPanelColumns];
        typename Weights::Scale minima[kPanelColumns];
    };

    static void round(const float* x, RowBlock& to) {
        std::int32_t sum;
        to.scale = round_32(x, to.numbers, sum);
        to.sum = to.scale * static_cast<float>(sum);
        to.start = -Weights::kOffset * sum;
    }

    static void make(const Block* first, std::int64_t stride, const Block* next, PanelBlock& to) {
        prefetch_far(next, kPanelColumns / kBlockColumns * sizeof(Block));
        Weights::make(first, stride, to);
    }

    template <int R>
    static void multiply(const PanelBlock* panel, int blocks, const RowBlock* tile,
                         simd::Vec (&sums)[R]) {
        for (; blocks > 0; --blocks, ++panel, tile += R) {
            Bytes products[R];
            for (int r = 0; r < R; ++r)
                products[r] = repeat4(&tile[r].start);
            if constexpr (Weights::kMost > 0 && !kAddsFour)
                add_by_twos(*panel, tile, products);
            else
                add_by_fours(*panel, tile, products);
            const simd::Vec scale = simd::load(panel->scales);
            for (int r = 0; r < R; ++r)
                sums[r] = simd::fma(to_floats(products[r]),
                                    simd::mul(scale, simd::all(tile[r].scale)), sums[r]);
            if constexpr (Weights::kHasMinimum) {
                const simd::Vec minimum = simd::load(panel->minima);
                for (int r = 0; r < R; ++r)
                    sums[r] = simd::fma(minimum, simd::all(tile[r].sum), sums[r]);
            }
        }
    }

   private:
    template <int R>
    static void add_by_fours(const PanelBlock& panel, const RowBlock* tile, Bytes (&products)[R]) {
        for (int quad = 0; quad < kQuads; ++quad) {
            const Bytes weights = load(panel.numbers[quad]);
            for (int r = 0; r < R; ++r)
                products[r] =
                    Weights::add(products[r], weights, repeat4(tile[r].numbers + 4 * quad));
        }
    }

    template <int R>
    static void add_by_twos(const PanelBlock& panel, const RowBlock* tile, Bytes (&products)[R]) {
        constexpr int kAtOnce = sums_that_fit(Weights::kMost) < kQuads ? 4 : kQuads;
        static_assert(kAtOnce <= sums_that_fit(Weights::kMost));
#pragma GCC unroll 2
        for (int i = 0; i < kQuads; i += kAtOnce) {
            Bytes sums[R];
#pragma GCC unroll 8
            for (int quad = i; quad < i + kAtOnce; ++quad) {
                const Bytes weights = load(panel.numbers[quad]);
                for (int r = 0; r < R; ++r) {
                    const Bytes two = sums_of_two(weights, repeat4(tile[r].numbers + 4 * quad));
                    sums[r] = quad == i ? two : plus16(sums[r], two);
                }
            }
            for (int r = 0; r < R; ++r)
                products[r] = add_pairs(products[r], sums[r], ones16());
        }
    }
};

}  // namespace fermata::products

#endif
