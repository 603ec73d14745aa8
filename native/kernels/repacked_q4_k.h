// Products of Q4_K weights, which ggml keeps in groups of eight columns (block_q4_Kx8), with rows
// of Q8_K.
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include "ggml-cpu-impl.h"
#include "repack.h"

namespace fermata::products {

using namespace bytes;

struct RepackedQ4_K {
    using Block = block_q4_Kx8;
    // Columns that one call computes.
    static constexpr int kColumns = 8;

    static constexpr int kParts = 64 / kBytes;   // vectors that hold 8 bytes of each column
    static constexpr int kQuarters = QK_K / 64;  // of a block: 32 low and 32 high nibbles a column

    // Blocks. Without it, eight rows of a weight that comes from memory take 1.4 times as long.
    static constexpr int kAhead = 4;

    // What the 64 numbers a column of one quarter are multiplied with, those of the low nibbles and
    // those of the high ones side by side as 16-bit integers.
    struct Scales {
        Bytes scales[kParts];  // two lanes a column
        __m256i mins;          // a lane a column
    };

    static __m256 halves(const ggml_half* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }

    /** Eight scales and eight mins of 6 bits, as bytes. */
    static __m128i unpack(const std::uint8_t* packed) {
        std::uint32_t u[3];
        std::memcpy(u, packed, sizeof(u));
        const std::uint32_t high = ((u[2] >> 4) & 0x0f0f0f0f) | (((u[1] >> 6) & 0x03030303) << 4);
        const std::uint32_t low = (u[2] & 0x0f0f0f0f) | (((u[0] >> 6) & 0x03030303) << 4);
        return _mm_set_epi32(static_cast<int>(high), static_cast<int>(u[1] & 0x3f3f3f3f),
                             static_cast<int>(low), static_cast<int>(u[0] & 0x3f3f3f3f));
    }

    static Scales scales_of(const std::uint8_t* packed) {
        const __m128i low = unpack(packed);
        const __m128i high = unpack(packed + 12);
        const __m256i scales = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(low, high));
        Scales result;
        result.mins = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(low, high));
        if constexpr (kParts == 1) {
#ifdef __AVX512F__
            result.scales[0] = _mm512_permutexvar_epi32(
                _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0),
                _mm512_castsi256_si512(scales));
#endif
        } else {
#ifndef __AVX512F__
            result.scales[0] =
                _mm256_permutevar8x32_epi32(scales, _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0));
            result.scales[1] =
                _mm256_permutevar8x32_epi32(scales, _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4));
#endif
        }
        return result;
    }

    /** One sum a column: its two lanes together. */
    static __m256i column_sums(const Bytes (&sums)[kParts]) {
#ifdef __AVX512F__
        return _mm512_cvtepi64_epi32(_mm512_add_epi32(sums[0], _mm512_srli_epi64(sums[0], 32)));
#else
        return _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[0], sums[1]), 0xd8);
#endif
    }

    /** What the mins of a block take from a row: one sum a column. */
    static __m256i below(const block_q8_K& row, const __m256i (&mins)[kQuarters]) {
        const auto* sums = reinterpret_cast<const __m128i*>(row.bsums);
        const __m256i of_32 = _mm256_castsi128_si256(
            _mm_hadd_epi16(_mm_loadu_si128(sums), _mm_loadu_si128(sums + 1)));
        __m256i total = _mm256_setzero_si256();
        for (int q = 0; q < kQuarters; ++q) {
            const __m256i both = _mm256_permutevar8x32_epi32(of_32, _mm256_set1_epi32(q));
            total = _mm256_add_epi32(total, _mm256_madd_epi16(both, mins[q]));
        }
        return total;
    }

    /** sums + what the 64 numbers at `x` make of one quarter. */
    static Bytes add_quarter(Bytes sums, const Bytes (&low)[4], const Bytes (&high)[4],
                             Bytes scales, const std::int8_t* x) {
        if constexpr (kAddsFour) {
            Bytes of_low = zero(), of_high = zero();
            for (int i = 0; i < 4; ++i) {
                of_low = add_products(of_low, low[i], repeat8(x + 8 * i));
                of_high = add_products(of_high, high[i], repeat8(x + 32 + 8 * i));
            }
            return add_pairs(sums, pair(of_low, of_high), scales);
        } else {
            static_assert(sums_that_fit(15) >= 4);
            Bytes of_low = sums_of_two(low[0], repeat8(x));
            Bytes of_high = sums_of_two(high[0], repeat8(x + 32));
            for (int i = 1; i < 4; ++i) {
                of_low = plus16(of_low, sums_of_two(low[i], repeat8(x + 8 * i)));
                of_high = plus16(of_high, sums_of_two(high[i], repeat8(x + 32 + 8 * i)));
            }
            const Bytes both_low = pair(scales, scales);
            const Bytes both_high = pair(upper16(scales), upper16(scales));
            return add_pairs(add_pairs(sums, of_low, both_low), of_high, both_high);
        }
    }

    /**
     * out[r][0 .. 8] = rows[r] x eight columns of `blocks` blocks. The arithmetic of a row is that
     * of ggml_gemv_q4_K_8x8_q8_K, to the bit.
     */
    template <int R>
    static void multiply(const Block* weights, int blocks, const block_q8_K* const* rows,
                         float* const* out) {
        __m256 sums[R], mins[R];
        for (int r = 0; r < R; ++r)
            sums[r] = mins[r] = _mm256_setzero_ps();
        for (int b = 0; b < blocks; ++b) {
            const Block& block = weights[b];
            Bytes scaled[R][kParts];
            __m256i mins_of[kQuarters];
            for (int q = 0; q < kQuarters; ++q) {
                prefetch(block.qs + 256 * q + kAhead * sizeof(Block), 256);
                const Scales scales = scales_of(block.scales + 24 * q);
                mins_of[q] = scales.mins;
                for (int p = 0; p < kParts; ++p) {
                    Bytes low[4], high[4];
                    for (int i = 0; i < 4; ++i) {
                        const Bytes raw = load(block.qs + 256 * q + 64 * i + kBytes * p);
                        low[i] = low_nibbles(raw);
                        high[i] = high_nibbles(raw);
                    }
                    for (int r = 0; r < R; ++r) {
                        const std::int8_t* x = rows[r][b].qs + 64 * q;
                        const Bytes before = q == 0 ? zero() : scaled[r][p];
                        scaled[r][p] = add_quarter(before, low, high, scales.scales[p], x);
                    }
                }
            }
            const __m256 scale = halves(block.d);
            const __m256 min = halves(block.dmin);
            for (int r = 0; r < R; ++r) {
                const __m256 d = _mm256_set1_ps(rows[r][b].d);
                sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(column_sums(scaled[r])),
                                          _mm256_mul_ps(scale, d), sums[r]);
                mins[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(below(rows[r][b], mins_of)),
                                          _mm256_mul_ps(min, d), mins[r]);
            }
        }
        for (int r = 0; r < R; ++r)
            _mm256_storeu_ps(out[r], _mm256_sub_ps(sums[r], mins[r]));
    }
};

}  // namespace fermata::products

#endif
