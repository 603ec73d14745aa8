// One vector of floats on processors with AVX-512 or AVX2, and the few operations that attention
// needs. FERMATA_SIMD is defined where there is one.
#pragma once

#include <cstddef>

#include "ggml.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define FERMATA_SIMD
#include <immintrin.h>

namespace fermata::simd {

using Vec = __m512;
inline constexpr int kLanes = 16;
// A tile of accumulators: 6 rows of 4 vectors leave 8 of 32 registers for the operands.
inline constexpr int kTileRows = 6;
inline constexpr int kTileVecs = 4;

inline Vec zero() {
    return _mm512_setzero_ps();
}
inline Vec all(float x) {
    return _mm512_set1_ps(x);
}
inline Vec load(const float* p) {
    return _mm512_loadu_ps(p);
}
inline Vec load(const ggml_fp16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void store(float* p, Vec v) {
    _mm512_storeu_ps(p, v);
}
inline Vec add(Vec a, Vec b) {
    return _mm512_add_ps(a, b);
}
inline Vec sub(Vec a, Vec b) {
    return _mm512_sub_ps(a, b);
}
inline Vec mul(Vec a, Vec b) {
    return _mm512_mul_ps(a, b);
}
inline Vec greater(Vec a, Vec b) {
    return _mm512_max_ps(a, b);
}
inline Vec fma(Vec a, Vec b, Vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline float sum(Vec v) {
    return _mm512_reduce_add_ps(v);
}
inline float greatest(Vec v) {
    return _mm512_reduce_max_ps(v);
}
inline __m256 folded(Vec v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define FERMATA_SIMD
#include <immintrin.h>

namespace fermata::simd {

using Vec = __m256;
inline constexpr int kLanes = 8;
// 12 accumulators of 16 registers.
inline constexpr int kTileRows = 6;
inline constexpr int kTileVecs = 2;

inline Vec zero() {
    return _mm256_setzero_ps();
}
inline Vec all(float x) {
    return _mm256_set1_ps(x);
}
inline Vec load(const float* p) {
    return _mm256_loadu_ps(p);
}
inline Vec load(const ggml_fp16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void store(float* p, Vec v) {
    _mm256_storeu_ps(p, v);
}
inline Vec add(Vec a, Vec b) {
    return _mm256_add_ps(a, b);
}
inline Vec sub(Vec a, Vec b) {
    return _mm256_sub_ps(a, b);
}
inline Vec mul(Vec a, Vec b) {
    return _mm256_mul_ps(a, b);
}
inline Vec greater(Vec a, Vec b) {
    return _mm256_max_ps(a, b);
}
inline Vec fma(Vec a, Vec b, Vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline float sum(Vec v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
inline float greatest(Vec v) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
inline __m256 folded(Vec v) {
    return v;
}

#endif

#ifdef FERMATA_SIMD

/** Eight sums: lane i is the sum of `v[i]`. */
inline __m256 sums_of_eight(const __m256* v) {
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/** Writes an 8x8 block of `from` (row i at from[i]) transposed, its rows `stride` floats apart. */
inline void transpose_eight(const __m256* from, float* to, std::size_t stride) {
    __m256 pairs[8], quads[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(from[i], from[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(from[i], from[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        _mm256_storeu_ps(to + i * stride, _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * stride,
                         _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31));
    }
}

inline __m256 load_eight(const float* p) {
    return _mm256_loadu_ps(p);
}
inline __m256 load_eight(const ggml_fp16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

}  // namespace fermata::simd

#endif
