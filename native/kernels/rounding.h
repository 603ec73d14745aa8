// Numbers of rows rounded to bytes as ggml rounds them to Q8_0 and Q8_K: products with them have
// the same bits. ggml makes blocks of its own, from which ours would have to be copied, and Q8_K
// one number at a time.
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include <algorithm>
#include <cstdint>

namespace fermata::products {

namespace rounding {

inline __m256 absolute(__m256 v) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}
inline float greatest(__m256 v) {
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
/** The 32 integers as bytes. */
inline void store_bytes(const __m256i (&v)[4], std::int8_t* to) {
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
}

}  // namespace rounding

/** Rounds 32 numbers as Q8_0. Returns their scale; `sum`: of the bytes. */
inline float round_32(const float* x, std::int8_t* to, std::int32_t& sum) {
    using namespace rounding;
    __m256 v[4];
    for (int i = 0; i < 4; ++i)
        v[i] = _mm256_loadu_ps(x + 8 * i);
    __m256 most = absolute(v[0]);
    for (int i = 1; i < 4; ++i)
        most = _mm256_max_ps(most, absolute(v[i]));
    const float largest = greatest(most);
    const __m256 factor = _mm256_set1_ps(largest != 0.0f ? 127.0f / largest : 0.0f);
    __m256i rounded[4];
    for (int i = 0; i < 4; ++i)
        rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], factor));
    store_bytes(rounded, to);
    const __m256i pairs = _mm256_add_epi32(_mm256_add_epi32(rounded[0], rounded[1]),
                                           _mm256_add_epi32(rounded[2], rounded[3]));
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    sum = _mm_cvtsi128_si32(four) + _mm_extract_epi32(four, 1);
    return _cvtsh_ss(_cvtss_sh(largest / 127.0f, _MM_FROUND_TO_NEAREST_INT));
}

/**
 * Rounds 256 numbers as Q8_K. Returns their scale; `sums`: of each sixteen bytes. Where the largest
 * number is there with both signs, scale and bytes may both have the other sign than ggml's.
 */
inline float round_256(const float* x, std::int8_t* to, std::int16_t* sums) {
    using namespace rounding;
    __m256 most = _mm256_setzero_ps(), least = most;
    for (int i = 0; i < 256; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        most = _mm256_max_ps(v, most);
        least = _mm256_min_ps(v, least);
    }
    const float above = greatest(most);
    const float below = greatest(_mm256_sub_ps(_mm256_setzero_ps(), least));
    const float extreme = above > below ? above : -below;
    if (extreme == 0.0f) {
        std::fill_n(to, 256, std::int8_t{0});
        std::fill_n(sums, 16, std::int16_t{0});
        return 0.0f;
    }
    const float factor = -127.0f / extreme;
    const __m256 factors = _mm256_set1_ps(factor);
    for (int i = 0; i < 256; i += 128) {
        __m256i of_sixteen[8];
        for (int j = 0; j < 4; ++j) {
            __m256i v[4];
            for (int k = 0; k < 4; ++k)
                v[k] = _mm256_cvtps_epi32(
                    _mm256_mul_ps(_mm256_loadu_ps(x + i + 32 * j + 8 * k), factors));
            store_bytes(v, to + i + 32 * j);
            of_sixteen[2 * j] = _mm256_add_epi32(v[0], v[1]);
            of_sixteen[2 * j + 1] = _mm256_add_epi32(v[2], v[3]);
        }
        const __m256i eight = bytes::sums_of_eight(of_sixteen);
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(sums + i / 16),
            _mm_packs_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1)));
    }
    return 1.0f / factor;
}

}  // namespace fermata::products

#endif
