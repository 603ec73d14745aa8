// Vectors of bytes on processors with AVX-512 or AVX2, and the products of small integers that
// quantized weights need. FERMATA_BYTES is defined where there are some.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define FERMATA_BYTES
#include <immintrin.h>

namespace fermata::bytes {

using Bytes = __m512i;
inline constexpr int kBytes = 64;

inline Bytes zero() {
    return _mm512_setzero_si512();
}
inline Bytes load(const void* p) {
    return _mm512_loadu_si512(p);
}
/** The 8 bytes at `p`, again and again. */
inline Bytes repeat8(const void* p) {
    std::int64_t x;
    std::memcpy(&x, p, sizeof(x));
    return _mm512_set1_epi64(x);
}
inline Bytes low_nibbles(Bytes v) {
    return _mm512_and_si512(v, _mm512_set1_epi8(0x0f));
}
inline Bytes high_nibbles(Bytes v) {
    return low_nibbles(_mm512_srli_epi16(v, 4));
}
/** sums[i] + the 4 products of unsigned and signed bytes of lane i; none exceeds 2^15. */
inline Bytes add_products(Bytes sums, Bytes of_unsigned, Bytes of_signed) {
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(sums, of_unsigned, of_signed);
#else
    const Bytes pairs = _mm512_maddubs_epi16(of_unsigned, of_signed);
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
}
/** sums[i] + the 2 products of the 16-bit integers of lane i. */
inline Bytes add_pairs(Bytes sums, Bytes a, Bytes b) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sums, a, b);
#else
    return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
#endif
}
/** Lanes of two 16-bit integers, from the lanes of a and b, which fit 16 bits. */
inline Bytes pair(Bytes a, Bytes b) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, a, _mm512_slli_epi32(b, 16));
}

}  // namespace fermata::bytes

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define FERMATA_BYTES
#include <immintrin.h>

namespace fermata::bytes {

using Bytes = __m256i;
inline constexpr int kBytes = 32;

inline Bytes zero() {
    return _mm256_setzero_si256();
}
inline Bytes load(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Bytes repeat8(const void* p) {
    std::int64_t x;
    std::memcpy(&x, p, sizeof(x));
    return _mm256_set1_epi64x(x);
}
inline Bytes low_nibbles(Bytes v) {
    return _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
}
inline Bytes high_nibbles(Bytes v) {
    return low_nibbles(_mm256_srli_epi16(v, 4));
}
inline Bytes add_products(Bytes sums, Bytes of_unsigned, Bytes of_signed) {
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sums, of_unsigned, of_signed);
#else
    const Bytes pairs = _mm256_maddubs_epi16(of_unsigned, of_signed);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}
inline Bytes add_pairs(Bytes sums, Bytes a, Bytes b) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}
inline Bytes pair(Bytes a, Bytes b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}

}  // namespace fermata::bytes

#endif

#ifdef FERMATA_BYTES

namespace fermata::bytes {

/** Asks for `size` bytes at `p`, which may lie past the end of the weights. */
inline void prefetch(const void* p, int size) {
    for (int i = 0; i < size; i += 64)
        _mm_prefetch(static_cast<const char*>(p) + i, _MM_HINT_T0);
}

}  // namespace fermata::bytes

#endif
