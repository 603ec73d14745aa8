// time_products THREADS TYPE ...: products of quantized weights of one layer by native/kernels and
// by ggml: milliseconds for 1 to 512 rows.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"

namespace {

// More weights than a cache holds.
constexpr int kWidth = 4096, kColumns = 16384;
constexpr int kRuns = 7;

/** Where llama.cpp keeps a model's weights of this type. */
ggml_backend_buffer_type_t buffers_for(ggml_type type) {
    const auto extra =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_cpu_reg(), "ggml_backend_dev_get_extra_bufts"));
    const bool is_repacked = type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_K ||
                             (type == GGML_TYPE_Q2_K && ggml_cpu_has_avx512()) ||
                             type == GGML_TYPE_IQ4_NL || type == GGML_TYPE_MXFP4;
    for (auto* found = extra(ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0));
         is_repacked && *found; ++found)
        if (ggml_backend_buft_name(*found) == std::string("CPU_REPACK")) return *found;
    return ggml_backend_cpu_buffer_type();
}

double best_ms(const std::function<void()>& work) {
    double best = 1e9;
    for (int run = 0; run < kRuns; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        best = std::min(best, took.count());
    }
    return best;
}

void measure(ggml_type type, int threads) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> some(1UL * kWidth * 512);
    for (float& x : some)
        x = normal(random);
    std::vector<char> packed(ggml_row_size(type, kWidth) * kColumns);
    // The columns repeat: to quantize them takes longer than to multiply with them.
    const std::size_t bytes = ggml_row_size(type, kWidth);
    ggml_quantize_chunk(type, some.data(), packed.data(), 0, 512, kWidth, nullptr);
    for (int column = 512; column < kColumns; ++column)
        std::memcpy(packed.data() + column * bytes, packed.data() + (column - 512) * bytes, bytes);

    std::printf("%-6s rows      ggml      ours     ratio\n", ggml_type_name(type));
    for (const int rows : {1, 2, 4, 8, 16, 64, 512}) {
        ggml_init_params memory{ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, true};
        ggml_context_ptr of_weights(ggml_init(memory)), context(ggml_init(memory));
        ggml_backend_ptr backend(ggml_backend_cpu_init());
        ggml_backend_cpu_set_n_threads(backend.get(), threads);
        ggml_tensor* weights = ggml_new_tensor_2d(of_weights.get(), type, kWidth, kColumns);
        ggml_backend_buffer_ptr weight_buffer(
            ggml_backend_alloc_ctx_tensors_from_buft(of_weights.get(), buffers_for(type)));
        ggml_backend_tensor_set(weights, packed.data(), 0, packed.size());
        ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kWidth, rows);
        ggml_cgraph* graph = ggml_new_graph(context.get());
        ggml_build_forward_expand(graph, ggml_mul_mat(context.get(), weights, x));
        ggml_backend_buffer_ptr buffer(
            ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
        ggml_backend_tensor_set(x, some.data(), 0, ggml_nbytes(x));

        double took[2];
        for (const bool is_ours : {false, true}) {
            ggml_backend_cpu_set_use_ref(backend.get(), !is_ours);
            took[is_ours] = best_ms([&] { ggml_backend_graph_compute(backend.get(), graph); });
        }
        std::printf("%11d %9.2f %9.2f %8.2fx\n", rows, took[0], took[1], took[0] / took[1]);
    }
}

}  // namespace

int main(int count, char** arguments) {
    ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    const int threads = count > 1 ? std::atoi(arguments[1]) : 0;
    if (threads < 1 || count < 3) {
        std::fputs("usage: time_products THREADS TYPE ... (q4_K, q8_0 ...)\n", stderr);
        return 2;
    }
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const char* name = ggml_type_name(static_cast<ggml_type>(type));
        for (int i = 2; i < count; ++i)
            if (name && std::strcmp(name, arguments[i]) == 0)
                measure(static_cast<ggml_type>(type), threads);
    }
}
