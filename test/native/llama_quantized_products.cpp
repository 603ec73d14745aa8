// native/kernels: products of quantized weights against sums in double precision, and that a row's
// bits are its own.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"

namespace {

constexpr int kBlock = 256;  // numbers of a block, of weights and of rows

struct Shape {
    ggml_type type = GGML_TYPE_Q4_K;
    bool repacked = true;  // in groups of columns, as llama.cpp keeps what it can of a model
    int width = kBlock, columns = 64, rows = 1, matrices = 1;
    int gap = 0;  // numbers between a row and the next
};

struct Inputs {
    std::vector<char> weights;  // [matrix][column][block]
    std::vector<float> x;       // [matrix][row][number]
};

/** Numbers of many sizes, some of them zero. */
std::vector<float> random_numbers(std::size_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    float size = 1;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 64 == 0) size = std::exp2(static_cast<float>(random() % 9) - 4);
        all[i] = random() % 50 == 0 ? 0 : normal(random) * size;
    }
    return all;
}

Inputs random_inputs(const Shape& s, std::mt19937& random) {
    const int columns = s.matrices * s.columns;
    const std::vector<float> weights = random_numbers(1UL * columns * s.width, random);
    std::vector<char> packed(ggml_row_size(s.type, s.width) * columns);
    ggml_quantize_chunk(s.type, weights.data(), packed.data(), 0, columns, s.width, nullptr);
    return {packed, random_numbers(1UL * s.matrices * s.rows * s.width, random)};
}

ggml_backend_buffer_type_t repacked_buffers() {
    const auto extra =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_cpu_reg(), "ggml_backend_dev_get_extra_bufts"));
    ggml_backend_dev_t cpu = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
    for (auto* type = extra(cpu); *type; ++type) {
        if (ggml_backend_buft_name(*type) == std::string("CPU_REPACK")) return *type;
    }
    return nullptr;
}

/** [matrix][row][column], as the operator computes it. */
std::vector<float> multiplied(const Shape& s, const Inputs& in, int threads,
                              bool fallback = false) {
    ggml_init_params memory{ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, true};
    ggml_context_ptr of_weights(ggml_init(memory)), context(ggml_init(memory));
    ggml_backend_ptr backend(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(backend.get(), threads);
    ggml_backend_cpu_set_use_ref(backend.get(), fallback);

    ggml_tensor* weights =
        ggml_new_tensor_3d(of_weights.get(), s.type, s.width, s.columns, s.matrices);
    ggml_backend_buffer_type_t type =
        s.repacked ? repacked_buffers() : ggml_backend_cpu_buffer_type();
    ggml_backend_buffer_ptr weight_buffer(
        ggml_backend_alloc_ctx_tensors_from_buft(of_weights.get(), type));
    ggml_backend_tensor_set(weights, in.weights.data(), 0, in.weights.size());

    ggml_tensor* wide =
        ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, s.width + s.gap, s.rows, s.matrices);
    ggml_tensor* x =
        ggml_view_3d(context.get(), wide, s.width, s.rows, s.matrices, wide->nb[1], wide->nb[2], 0);
    ggml_tensor* out = ggml_mul_mat(context.get(), weights, x);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, out);
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    for (int row = 0; row < s.matrices * s.rows; ++row)
        ggml_backend_tensor_set(wide, in.x.data() + 1UL * row * s.width, row * wide->nb[1],
                                s.width * sizeof(float));
    CHECK(ggml_backend_graph_compute(backend.get(), graph) == GGML_STATUS_SUCCESS);
    std::vector<float> result(ggml_nelements(out));
    ggml_backend_tensor_get(out, result.data(), 0, ggml_nbytes(out));
    return result;
}

/** What rows hold once each block of them is rounded to Q8_K: a scale, then 256 bytes. */
std::vector<float> rounded_rows(const std::vector<float>& from) {
    std::vector<char> bytes(ggml_row_size(GGML_TYPE_Q8_K, static_cast<std::int64_t>(from.size())));
    ggml_get_type_traits_cpu(GGML_TYPE_Q8_K)
        ->from_float(from.data(), bytes.data(), static_cast<std::int64_t>(from.size()));
    std::vector<float> to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
        const char* block = bytes.data() + i / kBlock * ggml_type_size(GGML_TYPE_Q8_K);
        float scale;
        std::memcpy(&scale, block, sizeof(scale));
        to[i] = scale * static_cast<std::int8_t>(block[sizeof(scale) + i % kBlock]);
    }
    return to;
}

/** The farthest `result` is from sums in double precision, in shares of the sum of all sizes. */
double error_of(const std::vector<float>& result, const Shape& s, const Inputs& in) {
    std::vector<float> weights(1UL * s.matrices * s.columns * s.width);
    ggml_get_type_traits(s.type)->to_float(in.weights.data(), weights.data(),
                                           static_cast<std::int64_t>(weights.size()));
    const std::vector<float> x = rounded_rows(in.x);
    double most = 0;
    CHECK_EQ(result.size(), 1UL * s.matrices * s.rows * s.columns);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::size_t column = i % s.columns, row = i / s.columns;
        const float* w = weights.data() + (row / s.rows * s.columns + column) * s.width;
        double sum = 0, size = 0;
        for (int n = 0; n < s.width; ++n) {
            const double product = double(w[n]) * x[row * s.width + n];
            sum += product;
            size += std::abs(product);
        }
        const double apart = std::abs(result[i] - sum) / (size + 1e-30);
        most = std::isnan(apart) ? INFINITY : std::max(most, apart);
    }
    return most;
}

int differences(const std::vector<float>& a, const std::vector<float>& b) {
    CHECK_EQ(a.size(), b.size());
    int count = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
    return count;
}

template <typename Value>
Value one_of(std::mt19937& random, std::initializer_list<Value> values) {
    return *(values.begin() + random() % values.size());
}

Shape random_shape(std::mt19937& random) {
    Shape s;
    s.repacked = random() % 2;
    s.type = s.repacked ? GGML_TYPE_Q4_K : GGML_TYPE_Q6_K;
    s.width = kBlock * one_of(random, {1, 2, 3, 6, 19});
    s.columns = 8 * one_of(random, {1, 2, 5, 32, 97});
    if (!s.repacked) s.columns -= static_cast<int>(random() % 8);
    s.rows = 1 + static_cast<int>(random() % (random() % 2 ? 9 : 40));
    s.gap = one_of(random, {0, 0, 64});
    return s;
}

TEST(random_shapes_agree_with_double_precision) {
    std::mt19937 random(11);
    for (int round = 0; round < 80; ++round) {
        const Shape s = random_shape(random);
        const Inputs in = random_inputs(s, random);
        // A sum of blocks in single precision.
        CHECK(error_of(multiplied(s, in, 1 + random() % 3), s, in) < 1e-6);
    }
}

TEST(other_types_and_several_matrices_are_ggmls) {
    std::mt19937 random(12);
    for (const ggml_type type : {GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        for (const int rows : {1, 6, 30}) {
            const Shape s{
                .type = type, .repacked = false, .columns = 24, .rows = rows, .matrices = 3};
            const Inputs in = random_inputs(s, random);
            CHECK(error_of(multiplied(s, in, 2), s, in) < 1e-6);
        }
    }
}

TEST(a_row_keeps_its_bits_beside_other_rows_and_on_any_number_of_threads) {
    if (!ggml_cpu_has_avx2()) return;  // ggml's own, which does not promise it
    std::mt19937 random(13);
    for (int round = 0; round < 30; ++round) {
        const Shape s = random_shape(random);
        const Inputs in = random_inputs(s, random);
        const std::vector<float> together = multiplied(s, in, 1);
        for (const int threads : {2, 3})
            CHECK_EQ(differences(together, multiplied(s, in, threads)), 0);
        Shape alone = s;
        alone.rows = 1;
        for (int row = 0; row < s.rows; row += s.rows > 16 ? 7 : 1) {
            const float* x = in.x.data() + 1UL * row * s.width;
            const float* own = together.data() + 1UL * row * s.columns;
            CHECK_EQ(differences({own, own + s.columns},
                                 multiplied(alone, {in.weights, {x, x + s.width}}, 2)),
                     0);
        }
    }
}

TEST(one_row_of_q4_k_has_the_bits_of_ggmls_own) {
    if (!ggml_cpu_has_avx2()) return;
    std::mt19937 random(14);
    for (int round = 0; round < 30; ++round) {
        Shape s = random_shape(random);
        if (!s.repacked) continue;
        s.rows = 1;
        const Inputs in = random_inputs(s, random);
        CHECK_EQ(differences(multiplied(s, in, 2), multiplied(s, in, 2, true)), 0);
    }
}

/** ggml says of each tensor that it is repacked. */
const bool quiet = [] {
    ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    return true;
}();

}  // namespace

TEST_MAIN()
