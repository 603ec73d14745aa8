// llama.cpp's own server uses AMX for all types that it can.
#include "kernels/quantized_products.h"

bool fermata::products::is_faster_without_amx(ggml_type) {
    return false;
}
