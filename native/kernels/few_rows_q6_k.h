// Q6_K for one or two rows on processors with AVX-512, without panels: making them takes longer
// than the memory does. All sums of a block are integers, so that a row's bits are those that
// panels give.
#pragma once

#include "kernels/panels_of_256.h"
#include "kernels/weights_of_256.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD) && defined(__AVX512F__)

namespace fermata::products {

struct FewRowsQ6_K {
    using RowBlock = PanelsOf256<WeightsQ6_K>::RowBlock;
    static constexpr int kRows = 2;
    static constexpr int kColumns = 4;

    /** sums[r][c] = row r of the tile x column c; columns are `blocks` blocks long. */
    template <int R>
    static void multiply(const block_q6_K* first, std::int64_t blocks, const RowBlock* tile,
                         float (&sums)[R][kColumns]) {
        __m128 of_rows[R] = {};
        for (std::int64_t b = 0; b < blocks; ++b, tile += R) {
            Bytes products[R][kColumns];
            alignas(16) ggml_fp16_t scales[8] = {};
#pragma GCC unroll 4
            for (int c = 0; c < kColumns; ++c) {
                const block_q6_K& block = first[c * blocks + b];
                prefetch_far(&block + kColumns * blocks, sizeof(block));
                scales[c] = block.d;
                const Numbers n = unpack(block);
                for (int r = 0; r < R; ++r)
                    products[r][c] = products_of(n, tile[r]);
            }
            const __m128 scale = _mm_cvtph_ps(load16(scales));
            for (int r = 0; r < R; ++r)
                of_rows[r] =
                    _mm_fmadd_ps(_mm_cvtepi32_ps(sums_of_four(products[r])),
                                 _mm_mul_ps(scale, _mm_set1_ps(tile[r].scale)), of_rows[r]);
        }
        for (int r = 0; r < R; ++r)
            _mm_storeu_ps(sums[r], of_rows[r]);
    }

   private:
    static constexpr int kVectors = QK_K / kBytes;  // of a block, in the order of its numbers
    static constexpr int kPairs = kVectors / 2;
    static constexpr int kParts = 16;
    static constexpr int kPartVectors = kParts * 4 / kBytes;

    struct Numbers {
        Bytes values[kVectors];  // 0 to 63: 32 too many
        Bytes scales[kPairs];    // of the vectors 2i and 2i + 1, side by side as 16-bit integers
        Bytes part_scales[kPartVectors];  // as 32-bit integers, in order
    };

    static Numbers unpack(const block_q6_K& block) {
        Numbers n;
        const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.scales));
        const __m512i places = _mm512_set_epi16(7, 3, 7, 3, 7, 3, 7, 3, 6, 2, 6, 2, 6, 2, 6, 2, 5,
                                                1, 5, 1, 5, 1, 5, 1, 4, 0, 4, 0, 4, 0, 4, 0);
        const __m512i all = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(packed));
        n.part_scales[0] = _mm512_cvtepi8_epi32(packed);
        for (int half = 0; half < 2; ++half) {
            const __m512i low = load(block.ql + 64 * half);
            const __m256i h =
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.qh + 32 * half));
            const __m512i high =
                _mm512_inserti64x4(_mm512_castsi256_si512(h), _mm256_srli_epi16(h, 2), 1);
            const __m512i two = _mm512_set1_epi8(0x30);
            n.values[2 * half] = _mm512_or_si512(low_nibbles(low),
                                                 _mm512_and_si512(_mm512_slli_epi16(high, 4), two));
            n.values[2 * half + 1] =
                _mm512_or_si512(high_nibbles(low), _mm512_and_si512(high, two));
            n.scales[half] = _mm512_permutexvar_epi16(
                _mm512_add_epi16(places, _mm512_set1_epi16(static_cast<short>(8 * half))), all);
        }
        return n;
    }

    /** Lanes whose sum is the row x the numbers. */
    static Bytes products_of(const Numbers& n, const RowBlock& row) {
        Bytes total = times(n.part_scales[0], load(row.starts));
        for (int i = 1; i < kPartVectors; ++i)
            total = plus(total, times(n.part_scales[i], load(row.starts + i * kBytes / 4)));
        for (int i = 0; i < kPairs; ++i) {
            const std::int8_t* x = row.numbers + 2 * kBytes * i;
            const Bytes a = add_products(zero(), n.values[2 * i], load(x));
            const Bytes c = add_products(zero(), n.values[2 * i + 1], load(x + kBytes));
            total = add_pairs(total, pair(a, c), n.scales[i]);
        }
        return total;
    }
};

}  // namespace fermata::products

#endif
