// A few rows of weights in blocks of 32 numbers on processors with AVX-512, without panels: making
// them takes longer than the memory does. Two blocks of eight columns at a time; the sums of
// a block are integers, and blocks are added one after the other, so that a row's bits are those
// that panels give.
#pragma once

#include "kernels/panels_of_32.h"
#include "kernels/weights_of_32.h"
#include "kernels/weights_of_eights.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD) && defined(__AVX512F__)

namespace fermata::products {

inline constexpr int kFewColumns = 8;

/** first for the lower eight lanes, second for the others. */
inline __m512 halves(float first, float second) {
    return _mm512_mask_broadcastss_ps(simd::all(first), 0xff00, _mm_set_ss(second));
}
inline Bytes halves(const void* first, const void* second) {
    const auto half = [](const void* p) {
        return _mm256_loadu_si256(static_cast<const __m256i*>(p));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(first)), half(second), 1);
}

/**
 * What a Type has, for two blocks of eight columns, a lane for each column of the first, then of
 * the next:
 *   multiply_two(first, next, blocks, rows, next_rows, products)   [row] sums of products
 *   scales(first, next, blocks)   of the weights
 *   ahead(first, blocks)          blocks that will be needed when those from `first` on are done
 *   ask(two, blocks)              asks for two blocks of each column
 */
template <typename Type, typename Weights>
struct FewRowsByTwoBlocks {
    using Block = typename Weights::Block;
    using RowBlock = typename PanelsOf32<Weights>::RowBlock;
    static constexpr int kColumns = kFewColumns;

    /** sums[r][c] = row r of the tile x column c; columns are `blocks` blocks long. */
    template <int R>
    static void multiply(const Block* first, std::int64_t blocks, const RowBlock* tile,
                         float (&sums)[R][kColumns]) {
        __m256 of_rows[R] = {};
        const Block* ahead = Type::ahead(first, blocks);
        std::int64_t b = 0;
        for (; b + 1 < blocks; b += 2, tile += 2 * R) {
            Type::ask(ahead + b, blocks);
            add<true>(first + b, first + b + 1, blocks, tile, tile + R, of_rows);
        }
        if (b < blocks) add<false>(first + b, first + b, blocks, tile, tile, of_rows);
        for (int r = 0; r < R; ++r)
            _mm256_storeu_ps(sums[r], of_rows[r]);
    }

   private:
    template <bool IsTwo, int R>
    static void add(const Block* first, const Block* next, std::int64_t blocks,
                    const RowBlock* rows, const RowBlock* next_rows, __m256 (&of_rows)[R]) {
        Bytes products[R];
        Type::multiply_two(first, next, blocks, rows, next_rows, products);
        const __m512 of_weights = Type::scales(first, next, blocks);
        for (int r = 0; r < R; ++r) {
            const __m512 sums = to_floats(products[r]);
            const __m512 scales = simd::mul(of_weights, halves(rows[r].scale, next_rows[r].scale));
            of_rows[r] = _mm256_fmadd_ps(_mm512_castps512_ps256(sums),
                                         _mm512_castps512_ps256(scales), of_rows[r]);
            if constexpr (IsTwo)
                of_rows[r] = _mm256_fmadd_ps(_mm512_extractf32x8_ps(sums, 1),
                                             _mm512_extractf32x8_ps(scales, 1), of_rows[r]);
        }
    }
};

// Weights that lie in groups of eight columns: they are read in the order of the memory.
template <typename Weights>
struct FewRowsOfEights : FewRowsByTwoBlocks<FewRowsOfEights<Weights>, Weights> {
    using Block = typename Weights::Block;
    using RowBlock = typename PanelsOf32<Weights>::RowBlock;
    static constexpr int kRows = 4;

    static const Block* ahead(const Block* first, std::int64_t) {
        return first + kAheadBytes / sizeof(Block);
    }
    static void ask(const Block* two, std::int64_t) { prefetch_far(two, 2 * sizeof(Block)); }

    static __m512 scales(const Block* first, const Block* next, std::int64_t) {
        return _mm512_cvtph_ps(_mm256_set_m128i(load16(next->d), load16(first->d)));
    }

    template <int R>
    static void multiply_two(const Block* first, const Block* next, std::int64_t,
                             const RowBlock* rows, const RowBlock* next_rows,
                             Bytes (&products)[R]) {
        Bytes of_first[R], of_next[R];
        multiply_one(*first, rows, of_first);
        multiply_one(*next, next_rows, of_next);
        for (int r = 0; r < R; ++r)
            products[r] =
                plus(even_lanes(of_first[r], of_next[r]), odd_lanes(of_first[r], of_next[r]));
    }

   private:
    /** Two lanes a column. */
    template <int R>
    static void multiply_one(const Block& block, const RowBlock* rows, Bytes (&products)[R]) {
        const Bytes a = load(block.qs), b = load(block.qs + kBytes);
        const Bytes numbers[] = {Weights::numbers(low_nibbles(a)), Weights::numbers(low_nibbles(b)),
                                 Weights::numbers(high_nibbles(a)),
                                 Weights::numbers(high_nibbles(b))};
        for (int r = 0; r < R; ++r) {
            products[r] = _mm512_maskz_set1_epi32(0x5555, rows[r].start);
            for (int i = 0; i < 4; ++i)
                products[r] =
                    Weights::add(products[r], numbers[i], repeat8(rows[r].numbers + 8 * i));
        }
    }
};

struct FewRowsQ8_0 : FewRowsByTwoBlocks<FewRowsQ8_0, WeightsQ8_0> {
    // The sums of a fourth would not fit the registers.
    static constexpr int kRows = 3;

    static const block_q8_0* ahead(const block_q8_0* first, std::int64_t blocks) {
        const auto bytes = kColumns * blocks * static_cast<std::int64_t>(sizeof(block_q8_0));
        return first + (kAheadBytes + bytes - 1) / bytes * kColumns * blocks;
    }
    // In the order of their use: in the order of the memory, columns of 1,088 bytes take 1.07 times
    // as long (Xeon of family 6 model 207).
    static void ask(const block_q8_0* two, std::int64_t blocks) {
        for (int c = 0; c < kColumns; ++c)
            prefetch_far(two + c * blocks, 2 * sizeof(block_q8_0));
    }

    static __m512 scales(const block_q8_0* first, const block_q8_0* next, std::int64_t blocks) {
        const Bytes both = _mm512_inserti64x4(_mm512_castsi256_si512(scales_of(first, blocks)),
                                              scales_of(next, blocks), 1);
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
    }

    template <int R>
    static void multiply_two(const block_q8_0* first, const block_q8_0* next, std::int64_t blocks,
                             const RowBlock* rows, const RowBlock* next_rows,
                             Bytes (&products)[R]) {
        Bytes numbers[R], lanes[R][kColumns];
        for (int r = 0; r < R; ++r)
            numbers[r] = halves(rows[r].numbers, next_rows[r].numbers);
#pragma GCC unroll 8
        for (int c = 0; c < kColumns; ++c) {
            const Bytes weights = flipped(halves(first[c * blocks].qs, next[c * blocks].qs),
                                          static_cast<char>(WeightsQ8_0::kOffset));
            for (int r = 0; r < R; ++r)
                lanes[r][c] = WeightsQ8_0::add(zero(), weights, numbers[r]);
        }
        for (int r = 0; r < R; ++r)
            products[r] = plus(sums_of(lanes[r]), starts(rows[r], next_rows[r]));
    }

   private:
    static Bytes starts(const RowBlock& first, const RowBlock& next) {
        return _mm512_mask_set1_epi32(all(first.start), 0xff00, next.start);
    }

    /** Lane c: the scale of column c, in its lower half. */
    static __m256i scales_of(const block_q8_0* first, std::int64_t blocks) {
        // So many bytes before it, which are of other columns, that it comes to its lane.
        const auto column = [&]<int C>(std::integral_constant<int, C>) {
            return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
                reinterpret_cast<const char*>(first + C * blocks) - 4 * C));
        };
        __m256i scales = column(std::integral_constant<int, 0>{});
        [&]<int... C>(std::integer_sequence<int, C...>) {
            ((scales =
                  _mm256_blend_epi32(scales, column(std::integral_constant<int, C + 1>{}), 2 << C)),
             ...);
        }(std::make_integer_sequence<int, kColumns - 1>{});
        return scales;
    }

    /** Lanes c and 8 + c: the sums of the lower and of the upper eight lanes of v[c]. */
    static Bytes sums_of(const Bytes (&v)[kColumns]) {
        Bytes fours[2];
        for (int i = 0; i < 2; ++i) {
            const Bytes a = by_lanes(v[4 * i], v[4 * i + 1]),
                        b = by_lanes(v[4 * i + 2], v[4 * i + 3]);
            fours[i] = plus(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
        }
        const Bytes quarters = plus(_mm512_shuffle_i32x4(fours[0], fours[1], 0x88),
                                    _mm512_shuffle_i32x4(fours[0], fours[1], 0xdd));
        return _mm512_shuffle_i32x4(quarters, quarters, 0xd8);
    }
    static Bytes by_lanes(Bytes a, Bytes b) {
        return plus(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    }
};

}  // namespace fermata::products

#endif
