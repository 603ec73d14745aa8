// The attention operator's tensors, and how its work is cut into jobs.
#pragma once

#include "kernels/shares.h"
#include "kernels/simd.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ggml-cpu-impl.h"

#ifdef FERMATA_SIMD

namespace fermata::attention {

constexpr int kBlock = 64;
constexpr std::int64_t kChunk = 128;
// Rows of a tile: enough to make a transposed key block cheap, few enough for the second cache.
constexpr std::int64_t kRowsOfTile = 192;
// Rows of all heads that wait for memory more than they compute.
constexpr std::int64_t kFewRows = 64;
// A job more or less at the end of an operator should not matter.
constexpr std::int64_t kJobsPerThread = 8;
// Of partial sums: eight sequences of 32 heads of 128, 32,768 positions into a context, take 34
// MiB.
constexpr std::size_t kMostPartialBytes = std::size_t{64} << 20;
// Latent attention has the largest heads (576 and 512) and the largest groups (128).
constexpr std::int64_t kLargestHead = 576;
constexpr std::int64_t kLargestTile = 256;

struct View {
    const char* data;
    ggml_type type;
    std::size_t position, head, stream;  // bytes from one to the next

    explicit View(const ggml_tensor* t)
        : data(static_cast<const char*>(t->data)),
          type(t->type),
          position(t->nb[1]),
          head(t->nb[2]),
          stream(t->nb[3]) {}

    const char* at(std::int64_t i, std::int64_t h, std::int64_t s) const {
        return data + i * position + h * head + s * stream;
    }
};

/** The operator's tensors and what follows from their shapes. */
struct Operation {
    const ggml_compute_params* params;
    const ggml_tensor *q, *mask, *sinks;
    ggml_tensor* dst;
    View k, v;
    std::int64_t key_size, value_size, tokens, heads, kv_heads, streams, positions;
    std::int64_t group;                    // query heads of a key head
    std::int64_t tile_tokens, tile_heads;  // tokens and key heads of a tile
    std::int64_t tiles;                    // of tile_heads key heads of a stream
    std::int64_t chunks, pieces;           // of all positions; the pieces are jobs of their own
    float scale, softcap;

    Operation(const ggml_compute_params* params_, ggml_tensor* dst_)
        : params(params_),
          q(dst_->src[0]),
          mask(dst_->src[3]),
          sinks(dst_->src[4]),
          dst(dst_),
          k(dst_->src[1]),
          v(dst_->src[2]),
          key_size(q->ne[0]),
          value_size(dst_->src[2]->ne[0]),
          tokens(q->ne[1]),
          heads(q->ne[2]),
          kv_heads(dst_->src[1]->ne[2]),
          streams(q->ne[3]),
          positions(dst_->src[1]->ne[1]),
          group(heads / kv_heads) {
        std::memcpy(&scale, dst->op_params, sizeof scale);
        std::memcpy(&softcap, reinterpret_cast<const float*>(dst->op_params) + 2, sizeof softcap);
        if (softcap != 0) scale /= softcap;
        tile_tokens = std::min(tokens, std::max<std::int64_t>(1, kRowsOfTile / group));
        // In memory a position's key heads lie side by side.
        tile_heads = tokens * heads <= kFewRows ? kv_heads : 1;
        tiles = (tokens + tile_tokens - 1) / tile_tokens;
        chunks = (positions + kChunk - 1) / kChunk;
        pieces = 1;
        const std::int64_t wanted = kJobsPerThread * params->nth;
        if (params->nth == 1 || 2 * jobs() >= wanted) return;
        if (partial_bytes() <= kMostPartialBytes) {
            pieces = std::min(chunks, wanted / jobs());
            return;
        }
        tile_heads = 1;
        const std::int64_t wanted_tiles = (wanted + streams * kv_heads - 1) / (streams * kv_heads);
        tile_tokens = std::min(tile_tokens, (tokens + wanted_tiles - 1) / wanted_tiles);
        tiles = (tokens + tile_tokens - 1) / tile_tokens;
    }

    std::int64_t jobs() const { return streams * (kv_heads / tile_heads) * tiles * pieces; }
    std::int64_t partial_size() const { return value_size + 2; }
    std::size_t partial_bytes() const {
        return tokens * heads * streams * chunks * partial_size() * sizeof(float);
    }
    std::int64_t row(std::int64_t token, std::int64_t head, std::int64_t stream) const {
        return (stream * heads + head) * tokens + token;
    }
    /** Memory of all threads: shares, then partials. Its address stands in ggml's own. */
    std::size_t common_bytes() const {
        return Shares::bytes(params->nth) + (pieces > 1 ? partial_bytes() : 0);
    }
    void set_common(void* memory) const { std::memcpy(params->wdata, &memory, sizeof memory); }
    char* common() const {
        char* memory;
        std::memcpy(&memory, params->wdata, sizeof memory);
        return memory;
    }
    Shares shares() const { return {common(), params->nth, jobs()}; }
    /** Where a split job leaves {greatest score, sum of weights, weighted values} of a chunk. */
    float* partial(std::int64_t row, std::int64_t index) const {
        return reinterpret_cast<float*>(common() + Shares::bytes(params->nth)) +
               (row * chunks + index) * partial_size();
    }
    const float* query(std::int64_t token, std::int64_t head, std::int64_t stream) const {
        return reinterpret_cast<const float*>(static_cast<const char*>(q->data) + token * q->nb[1] +
                                              head * q->nb[2] + stream * q->nb[3]);
    }
    const ggml_fp16_t* mask_row(std::int64_t token, std::int64_t stream) const {
        return reinterpret_cast<const ggml_fp16_t*>(static_cast<const char*>(mask->data) +
                                                    token * mask->nb[1] +
                                                    (stream % mask->ne[3]) * mask->nb[3]);
    }
    float* output(std::int64_t token, std::int64_t head, std::int64_t stream) const {
        return reinterpret_cast<float*>(static_cast<char*>(dst->data) + token * dst->nb[2] +
                                        head * dst->nb[1] + stream * dst->nb[3]);
    }
};

/** Whether the operator `dst` is one that attention() takes. */
inline bool handles(const ggml_compute_params* params, const ggml_tensor* dst) {
    const ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *mask = dst->src[3];
    float max_bias;
    std::memcpy(&max_bias, reinterpret_cast<const float*>(dst->op_params) + 1, sizeof max_bias);
    const auto readable = [](const ggml_tensor* t) {
        return (t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_F32 ||
                ggml_get_type_traits(t->type)->to_float) &&
               t->nb[0] == ggml_type_size(t->type);
    };
    return !params->use_ref && max_bias == 0 && q->type == GGML_TYPE_F32 &&
           q->nb[0] == sizeof(float) && readable(k) && readable(v) &&
           k->ne[0] % simd::kLanes == 0 && v->ne[0] % simd::kLanes == 0 &&
           k->ne[0] <= kLargestHead && v->ne[0] <= kLargestHead && k->ne[2] == v->ne[2] &&
           k->ne[3] == v->ne[3] && q->ne[3] == k->ne[3] && q->ne[2] % k->ne[2] == 0 &&
           q->ne[2] / k->ne[2] <= kLargestTile &&
           (!mask || (mask->type == GGML_TYPE_F16 && mask->ne[2] == 1)) && k->ne[1] > 0;
}

}  // namespace fermata::attention
#endif
