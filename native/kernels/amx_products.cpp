// What ggml's AMX products are used for: types that have no kernel of our own here. Those are
// faster (Xeon of family 6 model 207, two threads, 512 rows: 1.1 to 1.7 times; two rows of Q4_K 3
// times), and a row's bits are its own. Of half-precision weights, ggml's products without AMX are
// faster too.
//
// AMX gets one group of rows. It takes several (models with convolutions or states have one for
// each sequence of a batch), but computes the places of all groups but the first wrongly: bytes are
// counted as numbers, so that results are missing where they belong and other memory is overwritten
// (llama.cpp v0.5.0, amx/mmq.cpp). Here the groups are one, since they lie one behind another.
// Weights of several matrices are packed as if they were one (ggml_backend_amx_convert_weight):
// they stay in memory of another kind.
#if defined(__AMX_INT8__) && defined(__AVX512VNNI__)

#include "amx/amx.h"
#include "ggml-impl.h"
#include "kernels/quantized_products.h"
#include "traits.h"

ggml_backend_buffer_type_t ggml_backend_amx_buffer_type_fallback();

namespace fermata::products {
namespace {

/** All its rows in one group. `tensor` is contiguous. */
ggml_tensor in_one_group(const ggml_tensor* tensor) {
    ggml_tensor flat = *tensor;
    flat.ne[1] = ggml_nrows(tensor);
    flat.ne[2] = flat.ne[3] = 1;
    flat.nb[2] = flat.nb[3] = flat.ne[1] * flat.nb[1];
    return flat;
}

ggml::cpu::tensor_traits* own_traits(const ggml_tensor* op) {
    return static_cast<ggml::cpu::tensor_traits*>(op->src[0]->extra);
}

// The same work area for the same rows: how they are grouped does not matter to it.
class OneGroup : public ggml::cpu::tensor_traits {
   public:
    bool work_size(int threads, const ggml_tensor* op, std::size_t& size) override {
        return own_traits(op)->work_size(threads, op, size);
    }

    bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
        ggml_tensor rows = in_one_group(op->src[1]);
        ggml_tensor product = in_one_group(op);
        product.src[1] = &rows;
        return own_traits(op)->compute_forward(params, &product);
    }
};

class AmxProducts : public ggml::cpu::extra_buffer_type {
   public:
    AmxProducts(ggml_backend_buffer_type_t type, ggml::cpu::extra_buffer_type* amx)
        : type_(type), amx_(amx) {}

    bool supports_op(ggml_backend_dev_t device, const ggml_tensor* op) override {
        const ggml_tensor* weights = op->src[0];
        return amx_->supports_op(device, op) && !is_faster_without_amx(weights->type) &&
               weights->ne[2] == 1 && weights->ne[3] == 1;
    }

    // Asked for each operator by each thread; ggml's own would ask the kernel for AMX each time.
    ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* op) override {
        const bool is_own = op->op == GGML_OP_MUL_MAT && op->src[0]->buffer &&
                            op->src[0]->buffer->buft == type_ && op->src[0]->extra;
        return is_own ? &one_group_ : nullptr;
    }

   private:
    ggml_backend_buffer_type_t type_;
    ggml::cpu::extra_buffer_type* amx_;
    OneGroup one_group_;
};

}  // namespace
}  // namespace fermata::products

ggml_backend_buffer_type_t ggml_backend_amx_buffer_type() {
    static const ggml_backend_buffer_type_t type = [] {
        ggml_backend_buffer_type_t amx = ggml_backend_amx_buffer_type_fallback();
        // As ggml's own, it lives as long as the process.
        if (amx)
            amx->context = new fermata::products::AmxProducts(
                amx, static_cast<ggml::cpu::extra_buffer_type*>(amx->context));
        return amx;
    }();
    return type;
}

#endif
