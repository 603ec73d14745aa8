// Panels of K-quants: blocks of 256 numbers, whose parts of 16 or 32 have small integers as scales
// (weights_of_256.h).
#pragma once

#include "kernels/panels.h"
#include "kernels/rounding.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

#include <algorithm>
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

    static void round(const float* x, RowBlock& to) {
        std::int16_t sums[kSixteens];
        to.scale = round_256(x, to.numbers, sums);
        for (int part = 0; part < kParts; ++part) {
            int sum = sums[part * kSixteens / kParts];
            if constexpr (kParts < kSixteens) sum += sums[2 * part + 1];
            to.starts[part] = -Weights::kOffset * sum;
            constexpr int kPlace[] = {0, 2, 1, 3};
            to.sums[part / 4 * 4 + kPlace[part % 4]] = static_cast<std::int16_t>(sum);
        }
    }

    static void make(const Block* first, std::int64_t stride, const Block* next, PanelBlock& to) {
        constexpr auto kAll = std::make_integer_sequence<int, kSixteens / 2>{};
        make_half<0>(first, stride, next, to, kAll);
        make_half<1>(first, stride, next, to, kAll);

        make_scales(first, stride, to);
    }

    /** All of a PanelBlock but its numbers. */
    static void make_scales(const Block* first, std::int64_t stride, PanelBlock& to) {
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
                const Bytes scale = signed_byte(load(panel->scales[part / 4]), part % 4);
                if constexpr (kAddsFour)
                    add_part_by_fours(*panel, part, scale, tile, of_block);
                else
                    add_part_by_twos(*panel, part, pair(scale, scale), tile, of_block);
            }
            if constexpr (Weights::kOffset && !kAddsFour)
                subtract_offset(panel->scales, tile, of_block);
            add_block(*panel, of_block, tile, sums);
        }
    }

    /** Adds what a block's integers amount to. */
    template <int R>
    static void add_block(const PanelBlock& panel, const Bytes (&of_block)[R], const RowBlock* tile,
                          simd::Vec (&sums)[R]) {
        const simd::Vec scale = simd::load(panel.scale);
        for (int r = 0; r < R; ++r)
            sums[r] = simd::fma(to_floats(of_block[r]), simd::mul(scale, simd::all(tile[r].scale)),
                                sums[r]);
        if constexpr (Weights::kHasMinimum) {
            Bytes below[R];
            times_sums(panel.minima, tile, below);
            const simd::Vec minimum = simd::load(panel.minimum);
            for (int r = 0; r < R; ++r)
                sums[r] = simd::fma(to_floats(below[r]),
                                    simd::mul(minimum, simd::all(-tile[r].scale)), sums[r]);
        }
    }

    /** What the offset of the weights adds to a block's products. */
    template <int R>
    static void subtract_offset(const std::uint8_t (*scales)[kBytes], const RowBlock* tile,
                                Bytes (&of_block)[R]) {
        Bytes sums[R];
        times_sums(scales, tile, sums);
        for (int r = 0; r < R; ++r)
            of_block[r] = minus(of_block[r], times(sums[r], all(Weights::kOffset)));
    }

   private:
    template <int R>
    static void add_part_by_fours(const PanelBlock& panel, int part, Bytes scale,
                                  const RowBlock* tile, Bytes (&of_block)[R]) {
        Bytes products[R];
        for (int r = 0; r < R; ++r)
            products[r] = Weights::kOffset ? repeat4(&tile[r].starts[part]) : zero();
#pragma GCC unroll 8
        for (int quad = part * kPartQuads; quad < (part + 1) * kPartQuads; ++quad) {
            const Bytes weights = load(panel.numbers[quad]);
            for (int r = 0; r < R; ++r)
                products[r] =
                    add_products(products[r], weights, repeat4(tile[r].numbers + 4 * quad));
        }
        for (int r = 0; r < R; ++r)
            of_block[r] = plus(of_block[r], times(products[r], scale));
    }

    /** `scales`: each scale as two 16-bit integers. */
    template <int R>
    static void add_part_by_twos(const PanelBlock& panel, int part, Bytes scales,
                                 const RowBlock* tile, Bytes (&of_block)[R]) {
        constexpr int kAtOnce = std::min(kPartQuads, sums_that_fit(Weights::kMost));
        static_assert(kPartQuads % kAtOnce == 0);
#pragma GCC unroll 4
        for (int i = 0; i < kPartQuads; i += kAtOnce) {
            Bytes sums[R];
#pragma GCC unroll 8
            for (int k = 0; k < kAtOnce; ++k) {
                const int quad = part * kPartQuads + i + k;
                const Bytes weights = load(panel.numbers[quad]);
                for (int r = 0; r < R; ++r) {
                    const Bytes two = sums_of_two(weights, repeat4(tile[r].numbers + 4 * quad));
                    sums[r] = k == 0 ? two : plus16(sums[r], two);
                }
            }
            for (int r = 0; r < R; ++r)
                of_block[r] = add_pairs(of_block[r], sums[r], scales);
        }
    }

    /** The sum over the parts: the part's number in `numbers` x the sum of the row's bytes. */
    template <int R>
    static void times_sums(const std::uint8_t (*numbers)[kBytes], const RowBlock* tile,
                           Bytes (&to)[R]) {
        for (int r = 0; r < R; ++r)
            to[r] = zero();
        for (int four = 0; four < kParts / 4; ++four) {
            const Bytes of_four = load(numbers[four]);
            const Bytes even = even_bytes(of_four), odd = odd_bytes(of_four);
            for (int r = 0; r < R; ++r) {
                to[r] = add_pairs(to[r], even, repeat4(tile[r].sums + 4 * four));
                to[r] = add_pairs(to[r], odd, repeat4(tile[r].sums + 4 * four + 2));
            }
        }
    }
};

}  // namespace fermata::products

#endif
