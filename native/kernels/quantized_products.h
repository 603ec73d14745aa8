#pragma once

#include "ggml.h"

namespace fermata::products {

/** Whether weights of this type are multiplied faster without ggml's AMX: by kernels of our own, or
 * by ggml's others. */
bool is_faster_without_amx(ggml_type type);

/** Whether a row's products with these weights have the same bits beside any other rows. */
bool keeps_bits(const ggml_tensor* weights);

}  // namespace fermata::products
