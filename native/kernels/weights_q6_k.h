// Products of Q6_K weights, as they lie in the file, with rows of Q8_K.
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include "ggml-cpu-impl.h"
#include "repack.h"
#include "simd-mappings.h"

namespace fermata::products {

using namespace bytes;

struct WeightsQ6K {
    using Block = block_q6_K;
    static constexpr int kColumns = 1;

    static constexpr int kVectors = QK_K / kBytes;  // of a block, in the order of its numbers
    static constexpr int kPairs = kVectors / 2;
    static constexpr int kAhead = 8;  // blocks

    struct Numbers {
        Bytes values[kVectors];  // 0 to 63: 32 too many
        Bytes scales[kPairs];    // of the vectors 2i and 2i + 1, side by side as 16-bit integers
        __m256i offsets;         // -32 times the scale of each 16 numbers
    };

    static Numbers unpack(const Block& block) {
        Numbers n;
        const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.scales));
        const __m256i scales = _mm256_cvtepi8_epi16(packed);
        n.offsets = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(scales, 5));
#ifdef __AVX512F__
        const __m512i places = _mm512_set_epi16(7, 3, 7, 3, 7, 3, 7, 3, 6, 2, 6, 2, 6, 2, 6, 2, 5,
                                                1, 5, 1, 5, 1, 5, 1, 4, 0, 4, 0, 4, 0, 4, 0);
        const __m512i all = _mm512_castsi256_si512(scales);
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
#else
        const __m128i places = _mm_set_epi8(3, 1, 3, 1, 3, 1, 3, 1, 2, 0, 2, 0, 2, 0, 2, 0);
        const __m256i two = _mm256_set1_epi8(0x30);
        for (int half = 0; half < 2; ++half) {
            const __m256i first = load(block.ql + 64 * half);
            const __m256i second = load(block.ql + 64 * half + 32);
            const __m256i high = load(block.qh + 32 * half);
            const auto with = [&](__m256i nibbles, __m256i bits) {
                return _mm256_or_si256(nibbles, _mm256_and_si256(bits, two));
            };
            n.values[4 * half] = with(low_nibbles(first), _mm256_slli_epi16(high, 4));
            n.values[4 * half + 1] = with(low_nibbles(second), _mm256_slli_epi16(high, 2));
            n.values[4 * half + 2] = with(high_nibbles(first), high);
            n.values[4 * half + 3] = with(high_nibbles(second), _mm256_srli_epi16(high, 2));
        }
        for (int i = 0; i < kPairs; ++i) {
            const __m128i place = _mm_add_epi8(places, _mm_set1_epi8(static_cast<char>(4 * i)));
            n.scales[i] = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(packed, place));
        }
#endif
        return n;
    }

    /** out[r][0] = rows[r] x the column of `blocks` blocks. */
    template <int R>
    static void multiply(const Block* weights, int blocks, const block_q8_K* const* rows,
                         float* const* out) {
#ifdef __AVX512F__
        __m512 sums[R];
        for (int r = 0; r < R; ++r)
            sums[r] = _mm512_setzero_ps();
#else
        __m256 sums[R];
        for (int r = 0; r < R; ++r)
            sums[r] = _mm256_setzero_ps();
#endif
        for (int b = 0; b < blocks; ++b) {
            prefetch<_MM_HINT_T0>(weights + b + kAhead, sizeof(Block));
            const Numbers n = unpack(weights[b]);
            const float scale = GGML_CPU_FP16_TO_FP32(weights[b].d);
            for (int r = 0; r < R; ++r) {
                const block_q8_K& row = rows[r][b];
                const __m256i offset = _mm256_madd_epi16(
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.bsums)), n.offsets);
#ifdef __AVX512F__
                Bytes total = _mm512_zextsi256_si512(offset);
#else
                Bytes total = offset;
#endif
                for (int i = 0; i < kPairs; ++i) {
                    const std::int8_t* x = row.qs + 2 * kBytes * i;
                    const Bytes a = add_products(zero(), n.values[2 * i], load(x));
                    const Bytes c = add_products(zero(), n.values[2 * i + 1], load(x + kBytes));
                    total = add_pairs(total, pair(a, c), n.scales[i]);
                }
                const float d = scale * row.d;
#ifdef __AVX512F__
                sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), _mm512_set1_ps(d), sums[r]);
#else
                sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), _mm256_set1_ps(d), sums[r]);
#endif
            }
        }
        for (int r = 0; r < R; ++r) {
#ifdef __AVX512F__
            out[r][0] = _mm512_reduce_add_ps(sums[r]);
#else
            const __m128 half =
                _mm_add_ps(_mm256_castps256_ps128(sums[r]), _mm256_extractf128_ps(sums[r], 1));
            const __m128 two = _mm_add_ps(half, _mm_movehl_ps(half, half));
            out[r][0] = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#endif
        }
    }
};

}  // namespace fermata::products

#endif
