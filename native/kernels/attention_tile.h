// Some rows that look at the same keys, computed together: attention's innermost work.
#pragma once

#include "kernels/attention_math.h"
#include "kernels/attention_operation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#ifdef FERMATA_SIMD

namespace fermata::attention {

// From this many rows on, transposing the keys costs less than a sum across lanes for each score.
// The two differ in the last bits. So that a draft's tokens have the bits that they have one after
// another, the number of tokens decides only from kManyTokens on: a draft has at most 15, and one
// more token before it.
constexpr int kManyRows = 8;
constexpr int kManyTokens = 17;
// Their scores fill 12 KiB, beside 16 KiB of keys or values of a head of 64.
constexpr int kRowsAtOnce = 48;

/** A thread's working memory, kept from one operator to the next; it begins with a cache line. */
class Scratch {
   public:
    float* take(std::size_t floats) {
        const std::size_t lines = (floats * sizeof(float) + kLine - 1) / kLine;
        if (lines > size_) {
            data_.reset(new Line[lines]);
            size_ = lines;
        }
        return reinterpret_cast<float*>(data_.get());
    }

   private:
    struct alignas(kLine) Line {
        char bytes[kLine];
    };

    std::unique_ptr<Line[]> data_;
    std::size_t size_ = 0;
};

inline thread_local Scratch scratch;

/** Per row of a tile: greatest score, sum of weights, weighted values. */
struct Sums {
    float *greatest, *weights, *values;
};

/** Writes a row's result: its values by the sum of its weights, the head's sink included. */
inline void finish(const Operation& op, std::int64_t token, std::int64_t head, std::int64_t stream,
                   float greatest, float weights, const float* values) {
    float scale = 1;
    if (op.sinks) {
        const float sink = static_cast<const float*>(op.sinks->data)[head];
        const float now = std::max(greatest, sink);
        scale = std::exp(greatest - now);
        weights = weights * scale + std::exp(sink - now);
    }
    const Vec factor = all(weights == 0 ? 0 : scale / weights);
    float* to = op.output(token, head, stream);
    for (std::int64_t d = 0; d < op.value_size; d += kLanes) {
        store(to + d, mul(load(values + d), factor));
    }
}

struct Row {
    std::int64_t index;  // in its tile
    bool sees_all;       // the whole block
};

/** Keys and values of up to 64 positions, as the rows read them. */
struct Block {
    std::int64_t first;  // position
    int n;
    bool transposed, half_keys, half_values;
    const char *keys, *values;
    Ahead keys_ahead, values_ahead;
    std::size_t key_stride, value_stride;  // bytes from a position to the next
};

/** Some tokens of one stream, for the query heads of some of its key heads. */
class Tile {
   public:
    Tile(const Operation& op, std::int64_t stream, std::int64_t first_head,
         std::int64_t first_token)
        : op_(op),
          stream_(stream),
          first_head_(first_head),
          first_token_(first_token),
          tokens_(std::min(op.tile_tokens, op.tokens - first_token)),
          rows_(tokens_ * op.tile_heads * op.group) {
        const std::int64_t dk = op.key_size, dv = op.value_size;
        float* next =
            scratch.take(rows_ * (dk + 2 * dv + 4) + kBlock * (2 * dk + dv) + kRowsAtOnce * kBlock);
        const auto part = [&next](std::int64_t floats) {
            next += floats;
            return next - floats;
        };
        q_ = part(rows_ * dk);
        chunk_ = {part(rows_), part(rows_), part(rows_ * dv)};
        total_ = {part(rows_), part(rows_), part(rows_ * dv)};
        transposed_ = part(kBlock * dk);
        plain_keys_ = part(kBlock * dk);
        plain_values_ = part(kBlock * dv);
        scores_ = part(kRowsAtOnce * kBlock);
        for (std::int64_t r = 0; r < rows_; ++r) {
            const float* from = op.query(token(r), head(r), stream);
            for (std::int64_t d = 0; d < dk; d += kLanes) {
                store(q_ + r * dk + d, mul(load(from + d), all(op.scale)));
            }
        }
    }

    /** All chunks, into the result. */
    void run() {
        clear(total_);
        for (std::int64_t c = 0; c < op_.chunks; ++c) {
            run_chunk(c);
            for (std::int64_t r = 0; r < rows_; ++r) {
                merge(total_.greatest[r], total_.weights[r], values(total_, r), chunk_.greatest[r],
                      chunk_.weights[r], values(chunk_, r), op_.value_size);
            }
        }
        for (std::int64_t r = 0; r < rows_; ++r) {
            finish(op_, token(r), head(r), stream_, total_.greatest[r], total_.weights[r],
                   values(total_, r));
        }
    }

    /** Chunks [first, last), each into its partial. */
    void run(std::int64_t first, std::int64_t last) {
        for (std::int64_t c = first; c < last; ++c) {
            run_chunk(c);
            for (std::int64_t r = 0; r < rows_; ++r) {
                float* to = op_.partial(op_.row(token(r), head(r), stream_), c);
                to[0] = chunk_.greatest[r];
                to[1] = chunk_.weights[r];
                std::memcpy(to + 2, values(chunk_, r), op_.value_size * sizeof(float));
            }
        }
    }

   private:
    // Rows lie key head by key head, token by token, query head by query head.
    std::int64_t token(std::int64_t row) const { return first_token_ + row / op_.group % tokens_; }
    std::int64_t head(std::int64_t row) const {
        return (first_head_ + row / op_.group / tokens_) * op_.group + row % op_.group;
    }
    float* values(const Sums& sums, std::int64_t row) const {
        return sums.values + row * op_.value_size;
    }

    void clear(const Sums& sums) const {
        std::fill_n(sums.greatest, rows_, -INFINITY);
        std::fill_n(sums.weights, rows_, 0.0f);
        std::fill_n(sums.values, rows_ * op_.value_size, 0.0f);
    }

    void run_chunk(std::int64_t index) {
        clear(chunk_);
        const std::int64_t end = std::min((index + 1) * kChunk, op_.positions);
        for (std::int64_t i = index * kChunk; i < end; i += kBlock) {
            run_block(i, static_cast<int>(std::min<std::int64_t>(kBlock, end - i)));
        }
    }

    void run_block(std::int64_t first, int n) {
        Sees sees[kLargestTile];
        int seeing = 0;
        for (std::int64_t t = 0; t < tokens_; ++t) {
            sees[t] = op_.mask      ? look(op_.mask_row(first_token_ + t, stream_) + first, n)
                      : n == kBlock ? Sees::kAll
                                    : Sees::kSome;
            seeing += sees[t] != Sees::kNothing;
        }
        if (seeing == 0) return;
        for (std::int64_t h = 0; h < op_.tile_heads; ++h) {
            Row rows[kLargestTile];
            int count = 0;
            for (std::int64_t t = 0; t < tokens_; ++t) {
                if (sees[t] == Sees::kNothing) continue;
                for (std::int64_t g = 0; g < op_.group; ++g) {
                    rows[count++] = {(h * tokens_ + t) * op_.group + g, sees[t] == Sees::kAll};
                }
            }
            run_head(rows, count, read_block(first_head_ + h, first, n, count));
        }
    }

    /** Scores of some rows, their weights, then the values: the first cache holds one of each. */
    void run_head(const Row* rows, int count, const Block& block) {
        for (int first = 0; first < count; first += kRowsAtOnce) {
            const int some = std::min(kRowsAtOnce, count - first);
            float kept[kRowsAtOnce];
            by_tiles(some, [&]<int R>(int i) { score<R>(rows + first + i, i, block); });
            for (int i = 0; i < some; ++i) {
                const Row& row = rows[first + i];
                adjust(scores_ + i * kBlock, row, block);
                kept[i] = weigh(scores_ + i * kBlock, chunk_.greatest[row.index],
                                chunk_.weights[row.index]);
            }
            by_tiles(some,
                     [&]<int R>(int i) { accumulate<R>(rows + first + i, i, kept + i, block); });
        }
    }

    /** Calls `work<R>(i)` for R rows from the i-th on, as many as a tile has, until all are done.
     */
    template <typename Work>
    static void by_tiles(int count, Work work) {
        int i = 0;
        for (; i + kTileRows <= count; i += kTileRows)
            work.template operator()<kTileRows>(i);
        switch (count - i) {
            case 1:
                return work.template operator()<1>(i);
            case 2:
                return work.template operator()<2>(i);
            case 3:
                return work.template operator()<3>(i);
            case 4:
                return work.template operator()<4>(i);
            case 5:
                return work.template operator()<5>(i);
            default:
                return;
        }
    }

    /** Where a tile has all key heads, its next block as it lies in memory, a part with each head.
     */
    Ahead ahead_of(const View& view, std::int64_t head, std::int64_t first) const {
        if (op_.tile_heads == 1 || view.head * op_.kv_heads != view.position)
            return {view.at(first + kAhead, head, stream_), view.position};
        return {view.at(first + kBlock, 0, stream_) + head * kBlock * view.head, view.head};
    }

    /** For many rows, and what is neither f16 nor f32 in any case, made floats; some are
     * transposed. */
    Block read_block(std::int64_t head, std::int64_t first, int n, int rows) {
        const bool for_many = rows >= kManyRows;
        Block block{first,
                    n,
                    op_.group >= kManyRows || op_.tokens >= kManyTokens,
                    op_.k.type == GGML_TYPE_F16,
                    op_.v.type == GGML_TYPE_F16,
                    op_.k.at(first, head, stream_),
                    op_.v.at(first, head, stream_),
                    ahead_of(op_.k, head, first),
                    ahead_of(op_.v, head, first),
                    op_.k.position,
                    op_.v.position};
        if (op_.k.type != GGML_TYPE_F32 && !(block.half_keys && (block.transposed || !for_many))) {
            as_floats(op_.k.type, block.keys, block.key_stride, n, op_.key_size, plain_keys_);
            block.half_keys = false;
        }
        if (op_.v.type != GGML_TYPE_F32 && (for_many || !block.half_values)) {
            as_floats(op_.v.type, block.values, block.value_stride, n, op_.value_size,
                      plain_values_);
            block.half_values = false;
        }
        if (block.transposed) {
            const auto transpose =
                block.half_keys ? transpose_keys<ggml_fp16_t> : transpose_keys<float>;
            transpose(transposed_, block.keys, block.key_stride, n, op_.key_size);
        }
        return block;
    }

    /** Rows of `size` elements become rows of floats at `to`, where `from` then points. */
    static void as_floats(ggml_type type, const char*& from, std::size_t& stride, int n,
                          std::int64_t size, float* to) {
        const auto convert = ggml_get_type_traits(type)->to_float;
        for (int j = 0; j < n; ++j) {
            const auto* half = reinterpret_cast<const ggml_fp16_t*>(from + j * stride);
            if (type != GGML_TYPE_F16) {
                convert(half, to + j * size, size);
                continue;
            }
            for (std::int64_t d = 0; d < size; d += kLanes)
                store(to + j * size + d, load(half + d));
        }
        from = reinterpret_cast<const char*>(to);
        stride = size * sizeof(float);
    }

    template <int R>
    void score(const Row* rows, int at, const Block& block) {
        const float* q[R];
        float* scores[R];
        for (int r = 0; r < R; ++r) {
            q[r] = q_ + rows[r].index * op_.key_size;
            scores[r] = scores_ + (at + r) * kBlock;
        }
        const int size = static_cast<int>(op_.key_size);
        if (block.transposed) {
            multiply<R, float>(scores, nullptr, q, reinterpret_cast<const char*>(transposed_),
                               kBlock * sizeof(float), size, kBlock, {});
        } else if (block.half_keys) {
            score_directly<R, ggml_fp16_t>(scores, q, block.keys, block.key_stride, block.n, size,
                                           block.keys_ahead);
        } else {
            score_directly<R, float>(scores, q, block.keys, block.key_stride, block.n, size,
                                     block.keys_ahead);
        }
    }

    template <int R>
    void accumulate(const Row* rows, int at, const float* kept, const Block& block) {
        const float* weights[R];
        float* sums[R];
        for (int r = 0; r < R; ++r) {
            weights[r] = scores_ + (at + r) * kBlock;
            sums[r] = values(chunk_, rows[r].index);
        }
        const auto add = block.half_values ? multiply<R, ggml_fp16_t> : multiply<R, float>;
        add(sums, kept, weights, block.values, block.value_stride, block.n, op_.value_size,
            block.values_ahead);
    }

    /** The soft cap and the mask. */
    void adjust(float* scores, const Row& row, const Block& block) const {
        if (op_.softcap != 0) {
            for (int j = 0; j < block.n; ++j)
                scores[j] = op_.softcap * std::tanh(scores[j]);
        }
        if (row.sees_all) return;
        if (op_.mask) {
            const ggml_fp16_t* mask = op_.mask_row(token(row.index), stream_) + block.first;
            int j = 0;
            for (; j + kLanes <= block.n; j += kLanes) {
                store(scores + j, add(load(scores + j), load(mask + j)));
            }
            for (; j < block.n; ++j)
                scores[j] += GGML_CPU_FP16_TO_FP32(mask[j]);
        }
        std::fill(scores + block.n, scores + kBlock, -INFINITY);
    }

    const Operation& op_;
    std::int64_t stream_, first_head_, first_token_, tokens_, rows_;
    float* q_;
    Sums chunk_, total_;  // of the chunk at work; of all chunks before it
    float *transposed_, *plain_keys_, *plain_values_, *scores_;
};

}  // namespace fermata::attention
#endif
