// Matrix products of quantized weights on x86 processors, in place of ggml's own (GGML_OP_MUL_MAT).
//
// ggml computes the products of two to fifteen rows hardly faster than one row after another: it
// unpacks the weights again for every row. Those are the steps of several agents that decode side
// by side, and of drafts. Here a piece of the weights is unpacked once for up to eight rows, whose
// sums stay in registers.
//
// A row's result does not depend on how many rows are computed with it, nor on the threads.
//
// ggml-cpu is compiled with its own ggml_cpu_extra_compute_forward renamed to
// ggml_cpu_extra_compute_forward_fallback (native/llama-cpp.cmake), which takes what this file does
// not: other types, weights in more than two dimensions, other processors.

#include <algorithm>
#include <cstdint>

#include "kernels/weights_q4_k.h"
#include "kernels/weights_q6_k.h"

#include "ggml-backend-impl.h"
#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "quants.h"
#include "traits.h"

extern "C" bool ggml_cpu_extra_compute_forward_fallback(ggml_compute_params* params,
                                                        ggml_tensor* op);

#ifdef FERMATA_BYTES

namespace fermata::products {
namespace {

constexpr int kTileRows = 8;
// Weights that are used for all rows before the next ones are read: half of a usual L2 cache.
constexpr std::int64_t kWeightBytes = 256 * 1024;
// Pieces of work for each thread, so that one that is delayed leaves some to the others.
constexpr std::int64_t kPiecesPerThread = 4;

// rows x columns of `dst` from the rows of Q8_K in the work area.
struct Product {
    const char* weights;
    const block_q8_K* rows;
    float* out;
    std::int64_t columns;
    std::int64_t row_count;
    std::int64_t out_stride;  // floats from a row to the next
    int blocks;               // of 256 numbers, of a row and of a column
};

template <typename Weights>
struct Kernel {
    using Block = typename Weights::Block;
    using Multiply = void (*)(const Block*, int, const block_q8_K* const*, float* const*);
    static constexpr Multiply kOfRows[kTileRows + 1] = {
        nullptr,
        Weights::template multiply<1>,
        Weights::template multiply<2>,
        Weights::template multiply<3>,
        Weights::template multiply<4>,
        Weights::template multiply<5>,
        Weights::template multiply<6>,
        Weights::template multiply<7>,
        Weights::template multiply<8>,
    };

    /** The columns from `begin` to `end`, multiples of kColumns, of all rows. */
    static void run(const Product& product, std::int64_t begin, std::int64_t end) {
        const auto bytes = static_cast<std::int64_t>(sizeof(Block)) * product.blocks;
        const std::int64_t groups = std::max<std::int64_t>(1, kWeightBytes / bytes);
        const std::int64_t step = groups * Weights::kColumns;
        for (std::int64_t column = begin; column < end; column += step)
            run_rows(product, column, std::min(column + step, end));
    }

    static void run_rows(const Product& product, std::int64_t begin, std::int64_t end) {
        const block_q8_K* rows[kTileRows];
        float* out[kTileRows];
        for (std::int64_t first = 0; first < product.row_count; first += kTileRows) {
            const auto count =
                static_cast<int>(std::min<std::int64_t>(kTileRows, product.row_count - first));
            for (int r = 0; r < count; ++r)
                rows[r] = product.rows + (first + r) * product.blocks;
            const auto multiply = kOfRows[count];
            for (std::int64_t column = begin; column < end; column += Weights::kColumns) {
                for (int r = 0; r < count; ++r)
                    out[r] = product.out + (first + r) * product.out_stride + column;
                const auto* weights = reinterpret_cast<const Block*>(product.weights) +
                                      column / Weights::kColumns * product.blocks;
                multiply(weights, product.blocks, rows, out);
            }
        }
    }
};

bool is_repacked(const ggml_tensor* weights) {
    return weights->buffer && weights->buffer->buft == ggml_backend_cpu_repack_buffer_type();
}

bool is_plain(const ggml_tensor* weights) {
    return !weights->buffer || (ggml_backend_buffer_is_host(weights->buffer) && !weights->extra);
}

using Run = void (*)(const Product&, std::int64_t, std::int64_t);
struct Chosen {
    Run run = nullptr;  // null: ggml's own
    int columns = 1;
};

Chosen kernel_for(const ggml_compute_params* params, const ggml_tensor* op) {
    if (op->op != GGML_OP_MUL_MAT || params->use_ref) return {};
    const ggml_tensor* weights = op->src[0];
    const ggml_tensor* x = op->src[1];
    if (weights->type != GGML_TYPE_Q4_K && weights->type != GGML_TYPE_Q6_K) return {};
    const bool is_matrix = weights->ne[2] == 1 && weights->ne[3] == 1 && x->ne[2] == 1 &&
                           x->ne[3] == 1 && x->type == GGML_TYPE_F32 && x->nb[0] == sizeof(float) &&
                           op->nb[0] == sizeof(float) && ggml_is_contiguous(weights);
    if (!is_matrix) return {};
    if (weights->type == GGML_TYPE_Q4_K && is_repacked(weights) && weights->extra &&
        weights->ne[1] % WeightsQ4K::kColumns == 0)
        return {Kernel<WeightsQ4K>::run, WeightsQ4K::kColumns};
    if (weights->type == GGML_TYPE_Q6_K && is_plain(weights))
        return {Kernel<WeightsQ6K>::run, WeightsQ6K::kColumns};
    return {};
}

/** Rounds the rows of x to Q8_K, block by block. */
void quantize(const ggml_compute_params* params, const ggml_tensor* x, int blocks) {
    auto* to = static_cast<block_q8_K*>(params->wdata);
    for (std::int64_t i = params->ith; i < x->ne[1] * blocks; i += params->nth) {
        const auto* row = static_cast<const char*>(x->data) + i / blocks * x->nb[1];
        quantize_row_q8_K(reinterpret_cast<const float*>(row) + i % blocks * QK_K, to + i, QK_K);
    }
}

void multiply(const ggml_compute_params* params, ggml_tensor* op, const Chosen& chosen) {
    const ggml_tensor* weights = op->src[0];
    const auto blocks = static_cast<int>(weights->ne[0] / QK_K);
    quantize(params, op->src[1], blocks);
    if (params->ith == 0) ggml_threadpool_chunk_set(params->threadpool, params->nth);
    ggml_barrier(params->threadpool);

    const Product product = {
        .weights = static_cast<const char*>(weights->data),
        .rows = static_cast<const block_q8_K*>(params->wdata),
        .out = static_cast<float*>(op->data),
        .columns = weights->ne[1],
        .row_count = op->src[1]->ne[1],
        .out_stride = static_cast<std::int64_t>(op->nb[1] / sizeof(float)),
        .blocks = blocks,
    };
    const std::int64_t pieces = params->nth == 1 ? 1 : params->nth * kPiecesPerThread;
    const std::int64_t groups = product.columns / chosen.columns;
    const std::int64_t size = (groups + pieces - 1) / pieces * chosen.columns;
    for (std::int64_t piece = params->ith; piece * size < product.columns;
         piece = ggml_threadpool_chunk_add(params->threadpool, 1))
        chosen.run(product, piece * size, std::min((piece + 1) * size, product.columns));
}

}  // namespace
}  // namespace fermata::products

bool ggml_cpu_extra_compute_forward(ggml_compute_params* params, ggml_tensor* op) {
    const auto chosen = fermata::products::kernel_for(params, op);
    if (chosen.run == nullptr) return ggml_cpu_extra_compute_forward_fallback(params, op);
    fermata::products::multiply(params, op, chosen);
    return true;
}

#else

bool ggml_cpu_extra_compute_forward(ggml_compute_params* params, ggml_tensor* op) {
    return ggml_cpu_extra_compute_forward_fallback(params, op);
}

#endif
