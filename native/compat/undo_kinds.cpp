// Kinds of models whose recurrent layers keep a state for each of the last rows (n_rs_seq).
//
// llama.cpp v0.5.0 names them in llm_arch_supports_rs_rollback(), and lacks two whose layers are
// built by functions that keep these states: Qwen3-Next's by those of Qwen3.5, Granite 4 H's by
// that of Nemotron-H. Its own function is compiled under another name (native/llama-cpp.cmake).
#include "llama-arch.h"

bool llm_arch_supports_rs_rollback_by_llama(const llm_arch& arch);

bool llm_arch_supports_rs_rollback(const llm_arch& arch) {
    return llm_arch_supports_rs_rollback_by_llama(arch) || arch == LLM_ARCH_QWEN3NEXT ||
           arch == LLM_ARCH_GRANITE_HYBRID;
}
