// Panels of K-quants: blocks of 256 numbers, whose parts of 16 or 32 have small integers as scales
// (weights_of_256.h).
#pragma once

#include "kernels/panels.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

#include <utility>

#include "ggml-cpu-impl.h"
#include "quants.h"

namespace fermata::products {

template <typename Weights>
struct PanelsOf256 {
    using Block = typename Weights::Block;
    static constexpr int kBlockColumns = 1;
    static constexpr int kNumbers = QK_K;
    static constexpr int kSixteens = kNumbers / 16;
    static constexpr int kParts = kNumbers / Weights::kPartNumbers;  // with a scale each
    static constexpr int kPartQuads = Weights::kPartNumbers / 4;

    struct RowBlock {
        float scale;
        std::int32_t starts[kParts];  // of sums of products: what the offset of the weights is
        std::int16_t sums[kParts];    // of bytes; of four parts: the first, third, second, fourth
        std::int8_t numbers[kNumbers];
    };

    struct alignas(kBytes) PanelBlock {
        std::uint8_t numbers[kNumbers / 4][kBytes];  // [quad][column][4]
        std::uint8_t scales[kParts / 4][kBytes];     // [four parts][column][4]
        std::uint8_t minima[kParts / 4][kBytes];
        ggml_fp16_t scale[kPanelColumns];
        ggml_fp16_t minimum[kPanelColumns];
    };

    /** As ggml rounds to Q8_K. */
    static RowBlock rounded(const float* x) {
        block_q8_K block;
        quantize_row_q8_K(x, &block, kNumbers);
        RowBlock row;
        row.scale = block.d;
        std::copy_n(block.qs, kNumbers, row.numbers);
        for (int part = 0; part < kParts; ++part) {
            int sum = block.bsums[part * kSixteens / kParts];
            if constexpr (kParts < kSixteens) sum += block.bsums[2 * part + 1];
            row.starts[part] = -Weights::kOffset * sum;
            constexpr int kPlace[] = {0, 2, 1, 3};
            row.sums[part / 4 * 4 + kPlace[part % 4]] = static_cast<std::int16_t>(sum);
        }
        return row;
    }

    static void make(const Block* first, std::int64_t stride, const Block* next, PanelBlock& to) {
        constexpr auto kAll = std::make_integer_sequence<int, kSixteens / 2>{};
        make_half<0>(first, stride, next, to, kAll);
        make_half<1>(first, stride, next, to, kAll);

        Bytes packed[4];
        turn(first, stride, Weights::scale_bytes, packed);
        Weights::unpack_scales(packed, to.scales, to.minima);
        for (int c = 0; c < kPanelColumns; ++c) {
            to.scale[c] = first[c * stride].d;
            if constexpr (Weights::kHasMinimum) to.minimum[c] = first[c * stride].dmin;
        }
    }

    /** The 16 bytes that `of_block` finds in each column's block, turned. */
    template <typename OfBlock>
    static void turn(const Block* first, std::int64_t stride, const OfBlock& of_block,
                     Bytes (&turned)[4]) {
        for (int i = 0; i < 4; ++i)
            turned[i] =
                lanes_of([&](int lane) { return of_block(first[(4 * lane + i) * stride]); });
        turn_lanes(turned);
    }

    template <int Half, int... I>
    static void make_half(const Block* first, std::int64_t stride, const Block* next,
                          PanelBlock& to, std::integer_sequence<int, I...>) {
        // Not all at once: that would wait for memory.
        constexpr int kShare = kPanelColumns * sizeof(Block) / 2 / Weights::kSixteens;
        const char* ahead =
            reinterpret_cast<const char*>(next) + Half * Weights::kSixteens * kShare;
        Bytes packed[Weights::kSixteens][4];
#pragma GCC unroll 8
        for (int n = 0; n < Weights::kSixteens; ++n) {
            prefetch_far(ahead + n * kShare, kShare);
            turn(
                first, stride,
                [&](const Block& block) {
                    return load16(reinterpret_cast<const char*>(&block) + Weights::at(Half, n));
                },
                packed[n]);
        }
#pragma GCC unroll 4
        for (int quad = 0; quad < 4; ++quad) {
            const auto sixteen = [&](int n) { return packed[n][quad]; };
            (store(to.numbers[4 * (kSixteens / 2 * Half + I) + quad],
                   Weights::template numbers<Half, I>(sixteen)),
             ...);
        }
    }

    template <int R>
    static void multiply(const PanelBlock* panel, int blocks, const RowBlock* tile,
                         simd::Vec (&sums)[R]) {
        for (; blocks > 0; --blocks, ++panel, tile += R) {
            Bytes of_block[R];
            for (int r = 0; r < R; ++r)
                of_block[r] = zero();
#pragma GCC unroll 4
            for (int part = 0; part < kParts; ++part) {
                Bytes products[R];
                for (int r = 0; r < R; ++r)
                    products[r] = Weights::kOffset ? repeat4(&tile[r].starts[part]) : zero();
#pragma GCC unroll 8
                for (int i = 0; i < kPartQuads; ++i) {
                    const int quad = part * kPartQuads + i;
                    const Bytes weights = load(panel->numbers[quad]);
                    for (int r = 0; r < R; ++r)
                        products[r] =
                            add_products(products[r], weights, repeat4(tile[r].numbers + 4 * quad));
                }
                const Bytes scale = signed_byte(load(panel->scales[part / 4]), part % 4);
                for (int r = 0; r < R; ++r)
                    of_block[r] = plus(of_block[r], times(products[r], scale));
            }
            const simd::Vec scale = simd::load(panel->scale);
            for (int r = 0; r < R; ++r)
                sums[r] = simd::fma(to_floats(of_block[r]),
                                    simd::mul(scale, simd::all(tile[r].scale)), sums[r]);
            if constexpr (Weights::kHasMinimum) subtract_minima(*panel, tile, sums);
        }
    }

    template <int R>
    static void subtract_minima(const PanelBlock& panel, const RowBlock* tile,
                                simd::Vec (&sums)[R]) {
        Bytes below[R];
        for (int r = 0; r < R; ++r)
            below[r] = zero();
        for (int four = 0; four < kParts / 4; ++four) {
            const Bytes minima = load(panel.minima[four]);
            const Bytes even = even_bytes(minima), odd = odd_bytes(minima);
            for (int r = 0; r < R; ++r) {
                below[r] = add_pairs(below[r], even, repeat4(tile[r].sums + 4 * four));
                below[r] = add_pairs(below[r], odd, repeat4(tile[r].sums + 4 * four + 2));
            }
        }
        const simd::Vec minimum = simd::load(panel.minimum);
        for (int r = 0; r < R; ++r)
            sums[r] = simd::fma(to_floats(below[r]), simd::mul(minimum, simd::all(-tile[r].scale)),
                                sums[r]);
    }
};

}  // namespace fermata::products

#endif
