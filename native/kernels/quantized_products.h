#pragma once

#include "ggml.h"

namespace fermata::products {

/** Whether weights of this type are multiplied by kernels of our own, wherever llama.cpp keeps them but for AMX. */
bool computes(ggml_type type);

}  // namespace fermata::products
