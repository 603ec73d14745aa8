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
/** Whether one instruction does add_products. Where none does, sums_of_two has less to do. */
#ifdef __AVX512VNNI__
inline constexpr bool kAddsFour = true;
#else
inline constexpr bool kAddsFour = false;
#endif
/** The sums of two products of unsigned and signed bytes, as 16-bit integers. */
inline Bytes sums_of_two(Bytes of_unsigned, Bytes of_signed) {
    return _mm512_maddubs_epi16(of_unsigned, of_signed);
}
inline Bytes plus16(Bytes a, Bytes b) {
    return _mm512_add_epi16(a, b);
}
inline Bytes ones16() {
    return _mm512_set1_epi16(1);
}
/** sums[i] + the 4 products of unsigned and signed bytes of lane i; no sum of 2 exceeds 2^15. */
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

/** The second 16-bit integer of each lane. */
inline Bytes upper16(Bytes lanes) {
    return _mm512_srli_epi32(lanes, 16);
}

/** The 4 bytes at `p`, again and again. */
inline Bytes repeat4(const void* p) {
    std::int32_t x;
    std::memcpy(&x, p, sizeof(x));
    return _mm512_set1_epi32(x);
}
inline void store(void* p, Bytes v) {
    _mm512_storeu_si512(p, v);
}
/** Of each byte, the bits of Mask, moved up by Places, or down. */
template <int Mask, int Places>
Bytes moved(Bytes v) {
    constexpr int kMask = Places < 0 ? Mask >> -Places : Mask << Places;
    const Bytes shifted = Places < 0 ? _mm512_srli_epi16(v, Places < 0 ? -Places : 0)
                                     : _mm512_slli_epi16(v, Places < 0 ? 0 : Places);
    return _mm512_and_si512(shifted, _mm512_set1_epi8(static_cast<char>(kMask)));
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm512_or_si512(a, b);
}
inline Bytes less(Bytes v, char x) {
    return _mm512_sub_epi8(v, _mm512_set1_epi8(x));
}
/** Every second byte, with its sign, as a 16-bit integer. */
inline Bytes even_bytes(Bytes v) {
    return _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8);
}
inline Bytes odd_bytes(Bytes v) {
    return _mm512_srai_epi16(v, 8);
}
/** Of 32-bit integers. */
inline Bytes plus(Bytes a, Bytes b) {
    return _mm512_add_epi32(a, b);
}
inline Bytes minus(Bytes a, Bytes b) {
    return _mm512_sub_epi32(a, b);
}
inline Bytes all(std::int32_t x) {
    return _mm512_set1_epi32(x);
}
inline Bytes times(Bytes a, Bytes b) {
    return _mm512_mullo_epi32(a, b);
}
/** Byte `i` of each lane, with its sign, as a 32-bit integer. */
inline Bytes signed_byte(Bytes v, int i) {
    return _mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * i), 24);
}
inline __m512 to_floats(Bytes integers) {
    return _mm512_cvtepi32_ps(integers);
}
inline Bytes even_lanes(Bytes a, Bytes b) {
    const Bytes places =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return _mm512_permutex2var_epi32(a, places, b);
}
inline Bytes odd_lanes(Bytes a, Bytes b) {
    const Bytes places =
        _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi32(a, places, b);
}
/** Each byte's number in a table of sixteen. */
inline Bytes looked_up(const std::int8_t* table, Bytes places) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), places);
}
inline Bytes flipped(Bytes v, char bits) {
    return _mm512_xor_si512(v, _mm512_set1_epi8(bits));
}
/** Half as many 32-bit integers with the same sum. */
inline __m256i folded(Bytes v) {
    return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
}
/** 16 bytes from each of lane(0), lane(1) ... */
template <typename Lane>
Bytes lanes_of(Lane lane) {
    const Bytes first = _mm512_castsi128_si512(lane(0));
    return _mm512_inserti32x4(_mm512_inserti32x4(_mm512_inserti32x4(first, lane(1), 1), lane(2), 2),
                              lane(3), 3);
}
/** Bytes with the fifth bit set for each bit set at `p`. */
inline __m128i fifth_bits(const void* p) {
    __mmask16 bits;
    std::memcpy(&bits, p, sizeof(bits));
    return _mm_maskz_set1_epi8(bits, 0x10);
}
/** Four vectors of a 4 x 4 block of 32-bit integers in each lane: the blocks transposed. */
inline void turn_lanes(Bytes (&v)[4]) {
    const Bytes a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    const Bytes c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, c), v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d), v[3] = _mm512_unpackhi_epi64(b, d);
}
/**
 * add_products for weights of eight bits with a sign, kept with kSignedOffset added; those of the
 * row are from -127 to 127.
 */
#ifdef __AVX512VNNI__
inline constexpr int kSignedOffset = 128;
inline Bytes add_signed_products(Bytes sums, Bytes weights, Bytes row) {
    return add_products(sums, weights, row);
}
#else
inline constexpr int kSignedOffset = 0;
inline Bytes add_signed_products(Bytes sums, Bytes weights, Bytes row) {
    const Bytes flipped = _mm512_mask_sub_epi8(row, _mm512_movepi8_mask(weights), zero(), row);
    return add_products(sums, _mm512_abs_epi8(weights), flipped);
}
#endif

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
#ifdef __AVXVNNI__
inline constexpr bool kAddsFour = true;
#else
inline constexpr bool kAddsFour = false;
#endif
inline Bytes sums_of_two(Bytes of_unsigned, Bytes of_signed) {
    return _mm256_maddubs_epi16(of_unsigned, of_signed);
}
inline Bytes plus16(Bytes a, Bytes b) {
    return _mm256_add_epi16(a, b);
}
inline Bytes ones16() {
    return _mm256_set1_epi16(1);
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
inline Bytes upper16(Bytes lanes) {
    return _mm256_srli_epi32(lanes, 16);
}
inline Bytes repeat4(const void* p) {
    std::int32_t x;
    std::memcpy(&x, p, sizeof(x));
    return _mm256_set1_epi32(x);
}
inline void store(void* p, Bytes v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}
/** Of each byte, the bits of Mask, moved up by Places, or down. */
template <int Mask, int Places>
Bytes moved(Bytes v) {
    constexpr int kMask = Places < 0 ? Mask >> -Places : Mask << Places;
    const Bytes shifted = Places < 0 ? _mm256_srli_epi16(v, Places < 0 ? -Places : 0)
                                     : _mm256_slli_epi16(v, Places < 0 ? 0 : Places);
    return _mm256_and_si256(shifted, _mm256_set1_epi8(static_cast<char>(kMask)));
}
inline Bytes either(Bytes a, Bytes b) {
    return _mm256_or_si256(a, b);
}
inline Bytes less(Bytes v, char x) {
    return _mm256_sub_epi8(v, _mm256_set1_epi8(x));
}
/** Every second byte as a 16-bit integer. */
inline Bytes even_bytes(Bytes v) {
    return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}
inline Bytes odd_bytes(Bytes v) {
    return _mm256_srai_epi16(v, 8);
}
/** Of 32-bit integers. */
inline Bytes plus(Bytes a, Bytes b) {
    return _mm256_add_epi32(a, b);
}
inline Bytes minus(Bytes a, Bytes b) {
    return _mm256_sub_epi32(a, b);
}
inline Bytes all(std::int32_t x) {
    return _mm256_set1_epi32(x);
}
inline Bytes times(Bytes a, Bytes b) {
    return _mm256_mullo_epi32(a, b);
}
/** Byte `i` of each lane, with its sign, as a 32-bit integer. */
inline Bytes signed_byte(Bytes v, int i) {
    return _mm256_srai_epi32(_mm256_slli_epi32(v, 24 - 8 * i), 24);
}
inline __m256 to_floats(Bytes integers) {
    return _mm256_cvtepi32_ps(integers);
}
inline Bytes even_lanes(Bytes a, Bytes b) {
    const __m256 both = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0xd8);
}
inline Bytes odd_lanes(Bytes a, Bytes b) {
    const __m256 both = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xdd);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0xd8);
}
inline Bytes looked_up(const std::int8_t* table, Bytes places) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), places);
}
inline Bytes flipped(Bytes v, char bits) {
    return _mm256_xor_si256(v, _mm256_set1_epi8(bits));
}
inline __m256i folded(Bytes v) {
    return v;
}
template <typename Lane>
Bytes lanes_of(Lane lane) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(lane(0)), lane(1), 1);
}
inline __m128i fifth_bits(const void* p) {
    std::int16_t bits;
    std::memcpy(&bits, p, sizeof(bits));
    const __m128i bytes =
        _mm_shuffle_epi8(_mm_cvtsi32_si128(bits), _mm_set_epi64x(0x0101010101010101, 0));
    const __m128i of_each = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201));
    const __m128i is_set = _mm_cmpeq_epi8(_mm_and_si128(bytes, of_each), of_each);
    return _mm_and_si128(is_set, _mm_set1_epi8(0x10));
}
inline void turn_lanes(Bytes (&v)[4]) {
    const Bytes a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    const Bytes c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c), v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d), v[3] = _mm256_unpackhi_epi64(b, d);
}
inline constexpr int kSignedOffset = 0;
inline Bytes add_signed_products(Bytes sums, Bytes weights, Bytes row) {
    return add_products(sums, _mm256_abs_epi8(weights), _mm256_sign_epi8(row, weights));
}

}  // namespace fermata::bytes

#endif

#ifdef FERMATA_BYTES

namespace fermata::bytes {

/** How many results of sums_of_two fit 16 bits when added up, of weights from 0 to `most`. */
constexpr int sums_that_fit(int most) {
    return 32767 / (2 * 128 * most);
}
/** Lane i: the sum of the 32-bit integers of v[i]. */
inline __m256i sums_of_eight(const __m256i (&v)[8]) {
    const __m256i a =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i b =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}
/** The same of four. */
inline __m128i sums_of_four(const Bytes (&v)[4]) {
    __m256i half[4];
    for (int i = 0; i < 4; ++i)
        half[i] = folded(v[i]);
    const __m256i four =
        _mm256_hadd_epi32(_mm256_hadd_epi32(half[0], half[1]), _mm256_hadd_epi32(half[2], half[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
}
inline __m128i load16(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
/** Asks for `size` bytes at `p`, which may lie past the end of the weights. */
inline void prefetch(const void* p, int size) {
    for (int i = 0; i < size; i += 64)
        _mm_prefetch(static_cast<const char*>(p) + i, _MM_HINT_T0);
}
/** The same into the second cache: the first would lose them again before they are used. */
inline void prefetch_far(const void* p, int size) {
    for (int i = 0; i < size; i += 64)
        _mm_prefetch(static_cast<const char*>(p) + i, _MM_HINT_T1);
}

}  // namespace fermata::bytes

#endif
