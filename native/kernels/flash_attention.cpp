// Attention on x86 processors, in place of ggml's own CPU operator GGML_OP_FLASH_ATTN_EXT.
//
// ggml computes a decoded row with one vector operation after another, keeping the sum in half
// precision in memory, and reads the keys once for every query head. Here the rows that look at
// the same keys (the query heads of a group, the tokens of a tile) are computed together, with
// their sums in registers, and a key block is transposed once for all of them.
//
// A row's result depends neither on the number of threads nor on the other streams of the batch,
// nor on up to 15 other tokens of its own stream: its keys are taken in chunks of 128 positions,
// each chunk in blocks of 64, and the chunks' sums are merged from left to right, whichever thread
// made them.
//
// ggml-cpu is compiled with its own operator renamed to ggml_flash_attn_ext_fallback
// (native/llama-cpp.cmake), which takes what this file does not: ALiBi, a mask per head, heads
// whose size is no multiple of a vector, other processors.

#include "kernels/attention_tile.h"

#include <cstdint>
#include <cstring>

#include "ggml-cpu-impl.h"
#include "ops.h"

extern "C" void ggml_flash_attn_ext_fallback(const ggml_compute_params* params, ggml_tensor* dst);

#ifdef FERMATA_SIMD

namespace fermata::attention {
namespace {

// Of the first thread of a graph, for all of them.
thread_local Scratch common;

void run_job(const Operation& op, std::int64_t job) {
    const std::int64_t piece = job % op.pieces;
    const std::int64_t tile = job / op.pieces % op.tiles;
    const std::int64_t head = job / op.pieces / op.tiles * op.tile_heads;
    Tile rows(op, head / op.kv_heads, head % op.kv_heads, tile * op.tile_tokens);
    if (op.pieces == 1) {
        rows.run();
    } else {
        rows.run(op.chunks * piece / op.pieces, op.chunks * (piece + 1) / op.pieces);
    }
}

void merge_partials(const Operation& op) {
    const std::int64_t count = op.streams * op.heads * op.tokens;
    for (std::int64_t row = op.params->ith; row < count; row += op.params->nth) {
        float* sums = op.partial(row, 0);
        for (std::int64_t c = 1; c < op.chunks; ++c) {
            const float* more = op.partial(row, c);
            merge(sums[0], sums[1], sums + 2, more[0], more[1], more + 2, op.value_size);
        }
        finish(op, row % op.tokens, row / op.tokens % op.heads, row / op.tokens / op.heads, sums[0],
               sums[1], sums + 2);
    }
}

void attend(const Operation& op) {
    const auto* params = op.params;
    if (params->ith == 0) {
        op.set_common(common.take(op.common_bytes() / sizeof(float)));
        for (int thread = 0; thread < params->nth; ++thread)
            op.shares().open(thread);
    }
    ggml_barrier(params->threadpool);
    Shares shares = op.shares();
    for (Range job = shares.take(params->ith, 1); !job.is_empty();
         job = shares.take(params->ith, 1))
        run_job(op, job.begin);
    if (op.pieces == 1) return;
    ggml_barrier(params->threadpool);
    merge_partials(op);
}

}  // namespace
}  // namespace fermata::attention
#endif

extern "C" void ggml_compute_forward_flash_attn_ext(const ggml_compute_params* params,
                                                    ggml_tensor* dst) {
#ifdef FERMATA_SIMD
    if (fermata::attention::handles(params, dst)) {
        return fermata::attention::attend(fermata::attention::Operation(params, dst));
    }
#endif
    ggml_flash_attn_ext_fallback(params, dst);
}
