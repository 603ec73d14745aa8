// What attention computes with the rows of a tile and a block of 64 keys.
#pragma once

#include "kernels/attention_operation.h"

#include <cmath>
#include <limits>

#include "vec.h"

#ifdef FERMATA_SIMD

namespace fermata::attention {

using namespace simd;

constexpr int kBlockVecs = kBlock / kLanes;
// Positions from one that is read to one that is asked for, where that is one head's.
constexpr int kAhead = 32;

/**
 * What is asked for as position i of a block is read: the cache is read with strides that hardware
 * prefetching does not follow well.
 */
struct Ahead {
    const char* first;
    std::size_t step;

    const char* at(std::int64_t i) const { return first + i * step; }
    Ahead moved(std::size_t bytes) const { return {first + bytes, step}; }
};

/** Asks for the `bytes` at `p`, which may lie past the end of the cache. */
inline void prefetch(const char* p, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += 64)
        _mm_prefetch(p + i, _MM_HINT_T0);
}

/**
 * out[r] = out[r] * keep[r] + sum over i < n of a[r][i] * b[i], for R rows and C vectors; `keep`
 * null: from zero. Rows of b are `stride` bytes apart.
 */
template <int R, int C, typename B>
inline void multiply_tile(float* const* out, const float* keep, const float* const* a,
                          const char* b, std::size_t stride, int n, Ahead ahead) {
    Vec sums[R][C];
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) {
            sums[r][c] = keep ? mul(load(out[r] + c * kLanes), all(keep[r])) : zero();
        }
    }
    for (int i = 0; i < n; ++i) {
        const B* row = reinterpret_cast<const B*>(b + i * stride);
        if (sizeof(B) == sizeof(ggml_fp16_t)) prefetch(ahead.at(i), C * kLanes * sizeof(B));
        Vec columns[C];
        for (int c = 0; c < C; ++c)
            columns[c] = load(row + c * kLanes);
        for (int r = 0; r < R; ++r) {
            const Vec weight = all(a[r][i]);
            for (int c = 0; c < C; ++c)
                sums[r][c] = fma(weight, columns[c], sums[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c)
            store(out[r] + c * kLanes, sums[r][c]);
    }
}

/** The same for `columns` columns, a multiple of a vector. */
template <int R, typename B>
void multiply(float* const* out, const float* keep, const float* const* a, const char* b,
              std::size_t stride, int n, std::int64_t columns, Ahead ahead) {
    float* shifted[R];
    std::int64_t c = 0;
    const auto shift = [&] {
        for (int r = 0; r < R; ++r)
            shifted[r] = out[r] + c;
    };
    for (; c + kTileVecs * kLanes <= columns; c += kTileVecs * kLanes) {
        shift();
        multiply_tile<R, kTileVecs, B>(shifted, keep, a, b + c * sizeof(B), stride, n,
                                       ahead.moved(c * sizeof(B)));
    }
    for (; c < columns; c += kLanes) {
        shift();
        multiply_tile<R, 1, B>(shifted, keep, a, b + c * sizeof(B), stride, n,
                               ahead.moved(c * sizeof(B)));
    }
}

/** Scores of R rows against a block of `n` keys as they lie in the cache; the rest is left. */
template <int R, typename K>
void score_directly(float* const* scores, const float* const* q, const char* keys,
                    std::size_t stride, int n, std::int64_t size, Ahead ahead) {
    __m256 halves[R][8];
    for (int first = 0; first < n; first += 8) {
        const int count = std::min(8, n - first);
        for (int j = 0; j < 8; ++j) {
            // Past the end the last key stands in; nobody reads its score.
            const K* key =
                reinterpret_cast<const K*>(keys + (first + std::min(j, count - 1)) * stride);
            prefetch(ahead.at(first + j), size * sizeof(K));
            Vec sums[R];
            for (int r = 0; r < R; ++r)
                sums[r] = zero();
            for (std::int64_t d = 0; d < size; d += kLanes) {
                const Vec part = load(key + d);
                for (int r = 0; r < R; ++r)
                    sums[r] = fma(part, load(q[r] + d), sums[r]);
            }
            for (int r = 0; r < R; ++r)
                halves[r][j] = folded(sums[r]);
        }
        for (int r = 0; r < R; ++r)
            _mm256_storeu_ps(scores[r] + first, sums_of_eight(halves[r]));
    }
}

/** Keys of a block, transposed: row d has component d of each of the 64. Missing ones are 0. */
template <typename K>
void transpose_keys(float* to, const char* keys, std::size_t stride, int n, std::int64_t size) {
    for (int first = 0; first < kBlock; first += 8) {
        for (std::int64_t d = 0; d < size; d += 8) {
            __m256 rows[8];
            for (int j = 0; j < 8; ++j) {
                rows[j] =
                    first + j < n
                        ? load_eight(reinterpret_cast<const K*>(keys + (first + j) * stride) + d)
                        : _mm256_setzero_ps();
            }
            transpose_eight(rows, to + d * kBlock + first, kBlock);
        }
    }
}

/** Turns a row's scores of a block into weights. Returns what the row's sums so far keep. */
inline float weigh(float* scores, float& greatest_score, float& sum_of_weights) {
    Vec top = load(scores);
    for (int c = 1; c < kBlockVecs; ++c)
        top = greater(top, load(scores + c * kLanes));
    const float before = greatest_score;
    const float now = std::max(before, greatest(top));
    if (now == -INFINITY) {
        std::fill_n(scores, kBlock, 0.0f);
        return 1;
    }
    Vec total = zero();
    for (int c = 0; c < kBlockVecs; ++c) {
        const Vec weights = ggml_v_expf(sub(load(scores + c * kLanes), all(now)));
        store(scores + c * kLanes, weights);
        total = add(total, weights);
    }
    const float kept = now == before ? 1 : std::exp(before - now);
    greatest_score = now;
    sum_of_weights = sum_of_weights * kept + sum(total);
    return kept;
}

/** Adds the sums of keys further right; a greatest score of minus infinity says "none yet". */
inline void merge(float& greatest, float& weights, float* values, float more_greatest,
                  float more_weights, const float* more_values, std::int64_t size) {
    if (more_greatest == -INFINITY) return;
    const float now = std::max(greatest, more_greatest);
    const Vec keep = all(std::exp(greatest - now));
    const Vec share = all(std::exp(more_greatest - now));
    for (std::int64_t d = 0; d < size; d += kLanes) {
        store(values + d, fma(load(more_values + d), share, mul(load(values + d), keep)));
    }
    weights = weights * std::exp(greatest - now) + more_weights * std::exp(more_greatest - now);
    greatest = now;
}

enum class Sees { kNothing, kAll, kSome };

/** What a token sees of `n` positions whose mask is `mask`. */
inline Sees look(const ggml_fp16_t* mask, int n) {
    constexpr std::uint64_t kHidden = 0xfc00'fc00'fc00'fc00;  // four times minus infinity
    if (n < kBlock) return Sees::kSome;
    std::uint64_t words[kBlock / 4];
    std::memcpy(words, mask, sizeof words);
    std::uint64_t hides = 0, shows = 0;
    for (const std::uint64_t word : words) {
        hides |= word;
        shows |= word ^ kHidden;
    }
    return shows == 0 ? Sees::kNothing : hides == 0 ? Sees::kAll : Sees::kSome;
}

}  // namespace fermata::attention
#endif
