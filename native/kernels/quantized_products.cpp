// Matrix products of quantized weights on x86 processors, in place of ggml's own (GGML_OP_MUL_MAT,
// and GGML_OP_MUL_MAT_ID for experts), and of small matrices of floats (floats.h).
//
// ggml computes the products of two to fifteen rows hardly faster than one row after another: it
// unpacks the weights again for every row. Those are the steps of several agents that decode side
// by side, and of drafts. Here a piece of the weights is unpacked once for up to eight rows, whose
// sums stay in registers (blocks_of_256.h), or once for all (panels.h).
//
// A row's result does not depend on how many rows are computed with it, nor on the threads.
//
// ggml-cpu is compiled with its own ggml_cpu_extra_compute_forward and ggml_cpu_extra_work_size
// renamed to ..._fallback (native/llama-cpp.cmake), which take what this file does not: other
// types, other processors.

#include "kernels/quantized_products.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "kernels/blocks_of_256.h"
#include "kernels/bytes.h"
#include "kernels/experts.h"
#include "kernels/few_rows_avx2.h"
#include "kernels/few_rows_avx512.h"
#include "kernels/few_rows_q6_k.h"
#include "kernels/floats.h"
#include "kernels/panels_of_256.h"
#include "kernels/panels_of_32.h"
#include "kernels/repacked_q4_k.h"
#include "kernels/shares.h"
#include "kernels/weights_of_256.h"
#include "kernels/weights_of_32.h"
#include "kernels/weights_of_eights.h"

#include "ggml-backend-impl.h"
#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "repack.h"
#include "traits.h"

extern "C" bool ggml_cpu_extra_compute_forward_fallback(ggml_compute_params* params,
                                                        ggml_tensor* op);
extern "C" bool ggml_cpu_extra_work_size_fallback(int threads, const ggml_tensor* op,
                                                  std::size_t* size);

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

namespace fermata::products {
namespace {

// Pieces of work for each thread, so that one that is delayed leaves some to the others.
constexpr std::int64_t kPiecesPerThread = 4;
// Of its share, that a thread asks for before the others are ready. 16 KiB measured no better.
constexpr int kFirstBytes = 8192;

bool is_repacked(const ggml_tensor* weights) {
    return weights->buffer && weights->extra &&
           weights->buffer->buft == ggml_backend_cpu_repack_buffer_type();
}

bool is_plain(const ggml_tensor* weights) {
    return !weights->buffer || (ggml_backend_buffer_is_host(weights->buffer) && !weights->extra);
}

template <typename Family>
constexpr Kernel kKernel = {Family::kColumns, Family::row_bytes, Family::scratch_bytes,
                            Family::round_rows, Family::run};

// What computes a few rows, where making panels for them takes longer.
#ifdef __AVX512F__
template <typename Weights>
using FewRows = std::conditional_t<std::is_same_v<Weights, WeightsQ6_K>, FewRowsQ6_K, void>;
#else
template <typename Weights>
using FewRows = FewRowsOf256<Weights>;
using FewRowsQ8_0 = FewRowsOf32<WeightsQ8_0>;
template <typename Weights>
using FewRowsOfEights = void;
#endif
template <typename Weights>
using PlainOf256 = Panels<PanelsOf256<Weights>, FewRows<Weights>>;
template <typename Weights>
using OfEights = Panels<PanelsOf32<Weights>, FewRowsOfEights<Weights>>;

/** Null: ggml's own. */
const Kernel* for_repacked(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_K:
            return &kKernel<BlocksOf256<RepackedQ4_K>>;
        case GGML_TYPE_Q4_0:
            return &kKernel<OfEights<WeightsQ4_0>>;
        case GGML_TYPE_IQ4_NL:
            return &kKernel<OfEights<WeightsIQ4_NL>>;
        case GGML_TYPE_MXFP4:
            return &kKernel<Panels<PanelsOf32<WeightsMXFP4>>>;
        default:
            return nullptr;
    }
}

const Kernel* for_plain(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q2_K:
            return &kKernel<PlainOf256<WeightsQ2_K>>;
        case GGML_TYPE_Q3_K:
            return &kKernel<PlainOf256<WeightsQ3_K>>;
        case GGML_TYPE_Q4_K:
            return &kKernel<PlainOf256<WeightsQ4_K>>;
        case GGML_TYPE_Q5_K:
            return &kKernel<PlainOf256<WeightsQ5_K>>;
        case GGML_TYPE_Q6_K:
            return &kKernel<PlainOf256<WeightsQ6_K>>;
        case GGML_TYPE_Q4_1:
            return &kKernel<Panels<PanelsOf32<WeightsQ4_1>>>;
        case GGML_TYPE_Q5_0:
            return &kKernel<Panels<PanelsOf32<WeightsQ5_0>>>;
        case GGML_TYPE_Q5_1:
            return &kKernel<Panels<PanelsOf32<WeightsQ5_1>>>;
        case GGML_TYPE_Q8_0:
            return &kKernel<Panels<PanelsOf32<WeightsQ8_0>, FewRowsQ8_0>>;
        default:
            return nullptr;
    }
}

/** Rows that are a matrix's, one after another at the same distance. */
bool is_evenly_spaced(const ggml_tensor* rows) {
    return rows->nb[0] == sizeof(float) &&
           (rows->ne[2] == 1 || rows->nb[2] == rows->ne[1] * rows->nb[1]) &&
           (rows->ne[3] == 1 || rows->nb[3] == rows->ne[2] * rows->nb[2]);
}

/** Null: ggml's own. */
const Kernel* kernel_of(const ggml_tensor* weights) {
    if (weights->ne[3] > 1 || !ggml_is_contiguous(weights)) return nullptr;
    if (weights->type == GGML_TYPE_F32 && is_plain(weights)) {
        const bool fits = weights->ne[0] % simd::kLanes == 0;
        return fits && weights->ne[1] <= Floats::kMostColumns ? &kKernel<Floats> : nullptr;
    }
    if (weights->ne[1] < kPanelColumns) return nullptr;
    if (is_repacked(weights)) return for_repacked(weights->type);
    return is_plain(weights) ? for_plain(weights->type) : nullptr;
}

/** Null: ggml's own. */
const Kernel* kernel_for(const ggml_tensor* op) {
    const ggml_tensor* weights = op->src[0];
    const ggml_tensor* x = op->src[1];
    if (op->op == GGML_OP_MUL_MAT) {
        if (weights->ne[2] > 1 || !is_evenly_spaced(x) || !is_evenly_spaced(op)) return nullptr;
    } else if (op->op != GGML_OP_MUL_MAT_ID || x->ne[3] > 1) {
        return nullptr;
    }
    if (x->type != GGML_TYPE_F32 || x->nb[0] != sizeof(float)) return nullptr;
    return kernel_of(weights);
}

std::size_t lines(std::size_t bytes) {
    return (bytes + kLine - 1) / kLine * kLine;
}

// An operator and its work area: the rounded rows, what the experts need, each thread's scratch.
class Operator {
   public:
    Operator(const Kernel& kernel, const ggml_tensor* op)
        : kernel_(kernel),
          op_(op),
          width_(op->src[0]->ne[0]),
          rows_(op->ne[1] * op->ne[2] * op->ne[3]),
          experts_at_(lines(rows_ * kernel.row_bytes(width_))),
          scratch_at_(experts_at_ + (has_experts() ? lines(Experts::bytes(op)) : 0)) {}

    /** Of the work area, wherever it begins. */
    std::size_t bytes(int threads) const {
        return kLine + scratch_at_ + Shares::bytes(threads) +
               threads * lines(kernel_.scratch_bytes(width_));
    }

    void run(const ggml_compute_params* params) const {
        char* work = reinterpret_cast<char*>(lines(reinterpret_cast<std::size_t>(params->wdata)));
        std::optional<Experts> experts;
        if (has_experts()) {
            experts.emplace(work + experts_at_, op_);
            if (params->ith == 0) experts->group(op_);
            ggml_barrier(params->threadpool);
        }
        const std::int64_t groups = experts ? *experts->group_count : 1;
        const auto product = [&](std::int64_t group) {
            return experts ? of_expert(*experts, experts->groups[group], work) : of_all(work);
        };
        const std::int64_t columns = op_->src[0]->ne[1];
        const std::int64_t units = (columns + kernel_.columns - 1) / kernel_.columns;  // of a group
        Shares shares(work + scratch_at_, params->nth, groups * units);
        shares.open(params->ith);
        const std::int64_t first = shares.of(params->ith).begin;
        bytes::prefetch_far(static_cast<const char*>(product(first / units).weights) +
                                first % units * kernel_.columns * op_->src[0]->nb[1],
                            kFirstBytes);
        for (std::int64_t group = 0; group < groups; ++group)
            kernel_.round_rows(product(group), params->ith, params->nth);
        ggml_barrier(params->threadpool);

        char* scratch = work + scratch_at_ + Shares::bytes(params->nth) +
                        params->ith * lines(kernel_.scratch_bytes(width_));
        const std::int64_t size =
            params->nth == 1
                ? groups * units
                : std::max<std::int64_t>(1, groups * units / (params->nth * kPiecesPerThread));
        for (Range range = shares.take(params->ith, size); !range.is_empty();
             range = shares.take(params->ith, size)) {
            for (std::int64_t end; !range.is_empty(); range.begin = end) {
                const std::int64_t group = range.begin / units, before = group * units;
                end = std::min(range.end, before + units);
                kernel_.run(product(group), (range.begin - before) * kernel_.columns,
                            std::min((end - before) * kernel_.columns, columns), scratch);
            }
        }
    }

   private:
    bool has_experts() const { return op_->op == GGML_OP_MUL_MAT_ID; }

    Product of_all(char* work) const {
        return {
            .weights = op_->src[0]->data,
            .in = {static_cast<char*>(op_->src[1]->data), op_->src[1]->nb[1], nullptr},
            .out = {static_cast<char*>(op_->data), op_->nb[1], nullptr},
            .rounded = work,
            .row_count = rows_,
            .columns = op_->src[0]->ne[1],
            .width = width_,
        };
    }

    Product of_expert(const Experts& experts, const Group& group, char* work) const {
        Product product = of_all(work + group.first * kernel_.row_bytes(width_));
        product.weights = static_cast<char*>(op_->src[0]->data) + group.matrix * op_->src[0]->nb[2];
        product.in.offsets = experts.inputs + group.first;
        product.out.offsets = experts.outputs + group.first;
        product.row_count = group.count;
        return product;
    }

    const Kernel& kernel_;
    const ggml_tensor* op_;
    std::int64_t width_;
    std::int64_t rows_;
    std::size_t experts_at_;
    std::size_t scratch_at_;
};

/** What ggml's own products may need (ggml_graph_plan), or more. */
std::size_t ggml_work_bytes(const ggml_tensor* op) {
    const ggml_type type = ggml_get_type_traits_cpu(op->src[0]->type)->vec_dot_type;
    const std::size_t rows = ggml_row_size(type, ggml_nelements(op->src[1]));
    if (op->op == GGML_OP_MUL_MAT) return rows;
    const std::size_t of_expert = 2 * kLine + ggml_nelements(op->src[2]) * sizeof(std::int64_t);
    return rows + op->src[0]->ne[2] * of_expert + 4 * kLine;
}

}  // namespace

bool is_faster_without_amx(ggml_type type) {
    return type == GGML_TYPE_F16 || for_repacked(type) || for_plain(type);
}

bool keeps_bits(const ggml_tensor* weights) {
    return kernel_of(weights) != nullptr;
}

}  // namespace fermata::products

bool ggml_cpu_extra_compute_forward(ggml_compute_params* params, ggml_tensor* op) {
    const auto* kernel = params->use_ref ? nullptr : fermata::products::kernel_for(op);
    if (!kernel) return ggml_cpu_extra_compute_forward_fallback(params, op);
    fermata::products::Operator(*kernel, op).run(params);
    return true;
}

// Enough for either: which one computes is not known yet.
bool ggml_cpu_extra_work_size(int threads, const ggml_tensor* op, std::size_t* size) {
    const bool is_extra = ggml_cpu_extra_work_size_fallback(threads, op, size);
    const auto* kernel = fermata::products::kernel_for(op);
    if (!kernel) return is_extra;
    if (!is_extra) *size = fermata::products::ggml_work_bytes(op);
    *size = std::max(*size, fermata::products::Operator(*kernel, op).bytes(threads));
    return true;
}

#else

bool fermata::products::is_faster_without_amx(ggml_type) {
    return false;
}

bool fermata::products::keeps_bits(const ggml_tensor*) {
    return false;
}

bool ggml_cpu_extra_compute_forward(ggml_compute_params* params, ggml_tensor* op) {
    return ggml_cpu_extra_compute_forward_fallback(params, op);
}

bool ggml_cpu_extra_work_size(int threads, const ggml_tensor* op, std::size_t* size) {
    return ggml_cpu_extra_work_size_fallback(threads, op, size);
}

#endif
