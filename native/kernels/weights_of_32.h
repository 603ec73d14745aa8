// The types of weights whose blocks of 32 numbers have one scale, as panels_of_32.h unpacks them:
// number = scale * (byte - kOffset) + minimum. kMost: the greatest byte; 0: they have signs.
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include "ggml-cpu-impl.h"
#include "kernels/panels_of_32.h"

namespace fermata::products {

using namespace bytes;

// Type::numbers(block, half): sixteen numbers of a block, the first or the second half.
template <typename Type, typename PlainBlock, bool HasMinimum>
struct WeightsOf32 {
    using Block = PlainBlock;
    using Scale = ggml_fp16_t;
    static constexpr int kBlockColumns = 1;
    static constexpr bool kHasMinimum = HasMinimum;

    template <typename PanelBlock>
    static void make(const Block* first, std::int64_t stride, PanelBlock& to) {
        for (int half = 0; half < 2; ++half) {
            Bytes turned[4];
            for (int i = 0; i < 4; ++i)
                turned[i] = lanes_of(
                    [&](int lane) { return Type::numbers(first[(4 * lane + i) * stride], half); });
            turn_lanes(turned);
            for (int i = 0; i < 4; ++i)
                store(to.numbers[4 * half + i], turned[i]);
        }
        for (int c = 0; c < kPanelColumns; ++c) {
            to.scales[c] = first[c * stride].d;
            if constexpr (kHasMinimum) to.minima[c] = first[c * stride].m;
        }
    }
};

struct WeightsQ8_0 : WeightsOf32<WeightsQ8_0, block_q8_0, false> {
    static constexpr int kOffset = kSignedOffset;
    static constexpr int kMost = 0;

    static __m128i numbers(const Block& block, int half) {
        return _mm_xor_si128(load16(block.qs + 16 * half),
                             _mm_set1_epi8(static_cast<char>(kOffset)));
    }
    static Bytes add(Bytes sums, Bytes weights, Bytes row) {
        return add_signed_products(sums, weights, row);
    }
};

// Four bits of a number are a half of a byte: the lower half of the block's first sixteen.
template <typename Type, typename PlainBlock, bool HasMinimum>
struct WeightsOfNibbles : WeightsOf32<Type, PlainBlock, HasMinimum> {
    using Block = PlainBlock;

    static __m128i nibbles(const Block& block, int half) {
        const __m128i packed = load16(block.qs);
        return _mm_and_si128(half ? _mm_srli_epi16(packed, 4) : packed, _mm_set1_epi8(0x0f));
    }
    static __m128i with_fifth_bits(const Block& block, int half) {
        return _mm_or_si128(nibbles(block, half), fifth_bits(block.qh + 2 * half));
    }
    static Bytes add(Bytes sums, Bytes weights, Bytes row) {
        return add_products(sums, weights, row);
    }
};

struct WeightsQ4_1 : WeightsOfNibbles<WeightsQ4_1, block_q4_1, true> {
    static constexpr int kOffset = 0;
    static constexpr int kMost = 15;
    static __m128i numbers(const Block& block, int half) { return nibbles(block, half); }
};

struct WeightsQ5_0 : WeightsOfNibbles<WeightsQ5_0, block_q5_0, false> {
    static constexpr int kOffset = 16;
    static constexpr int kMost = 31;
    static __m128i numbers(const Block& block, int half) { return with_fifth_bits(block, half); }
};

struct WeightsQ5_1 : WeightsOfNibbles<WeightsQ5_1, block_q5_1, true> {
    static constexpr int kOffset = 0;
    static constexpr int kMost = 31;
    static __m128i numbers(const Block& block, int half) { return with_fifth_bits(block, half); }
};

}  // namespace fermata::products

#endif
