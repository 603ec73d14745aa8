#pragma once

#include "ggml.h"

namespace fermata::products {

/** Whether weights of this type are multiplied faster without ggml's AMX: by kernels of our own, or
 * by ggml's others. */
bool is_faster_without_amx(ggml_type type);

}  // namespace fermata::products
