// as_f32 IN.gguf OUT.gguf: the same model with its matrices in F32. Exactness is measured on such
// files: coarse weights are multiplied in int8, which differs more between batch shapes than a real
// error of reuse would.
#include <llama.h>

#include <cstdio>

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: as_f32 IN.gguf OUT.gguf\n");
        return 2;
    }
    llama_backend_init();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = LLAMA_FTYPE_ALL_F32;
    params.allow_requantize = true;
    params.pure = true;
    return llama_model_quantize(arguments[1], arguments[2], &params) == 0 ? 0 : 1;
}
