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

struct Shape {
    ggml_type type = GGML_TYPE_Q4_K;
    bool repacked = true;  // in groups of columns, as llama.cpp keeps what it can of a model
    int width = 256, columns = 64, rows = 1, matrices = 1;
    int gap = 0;  // numbers between a row and the next
};

struct Inputs {
    std::vector<char> weights;  // [matrix][column][block]
    std::vector<float> x;       // [matrix][row][number]
};

/** Numbers of many sizes, some of them zero; here and there a stretch of zeros, or of one size. */
std::vector<float> random_numbers(std::size_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    float size = 1;
    unsigned kind = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 64 == 0) {
            size = std::exp2(static_cast<float>(random() % 9) - 4);
            kind = random() % 10;
        }
        if (kind == 0 || random() % 50 == 0) continue;
        all[i] = kind == 1 ? (random() % 2 ? size : -size) : normal(random) * size;
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

ggml_backend_dev_t processor() {
    return ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
}

/** Where weights lie as kernels of this processor want them. Null: it has none of that name. */
ggml_backend_buffer_type_t buffers_named(const std::string& name) {
    const auto extra =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_cpu_reg(), "ggml_backend_dev_get_extra_bufts"));
    for (auto* type = extra(processor()); *type; ++type) {
        if (ggml_backend_buft_name(*type) == name) return *type;
    }
    return nullptr;
}

// A graph of one operator, with weights where the model's would be.
class Graph {
   public:
    Graph(const Shape& s, const Inputs& in)
        : Graph(s, in, s.repacked ? buffers_named("CPU_REPACK") : ggml_backend_cpu_buffer_type()) {}

    Graph(const Shape& s, const Inputs& in, ggml_backend_buffer_type_t buffers)
        : of_weights_(ggml_init(kMemory)),
          context_(ggml_init(kMemory)),
          backend_(ggml_backend_cpu_init()) {
        weights_ = ggml_new_tensor_3d(of_weights_.get(), s.type, s.width, s.columns, s.matrices);
        weight_buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(of_weights_.get(), buffers));
        ggml_backend_tensor_set(weights_, in.weights.data(), 0, in.weights.size());
    }

    ggml_context* context() { return context_.get(); }
    ggml_tensor* weights() { return weights_; }

    /** Calls `set` once the tensors have memory. */
    template <typename Set>
    std::vector<float> compute(ggml_tensor* out, int threads, bool fallback, const Set& set) {
        ggml_cgraph* graph = ggml_new_graph(context_.get());
        ggml_build_forward_expand(graph, out);
        buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), backend_.get()));
        set();
        ggml_backend_cpu_set_n_threads(backend_.get(), threads);
        ggml_backend_cpu_set_use_ref(backend_.get(), fallback);
        CHECK(ggml_backend_graph_compute(backend_.get(), graph) == GGML_STATUS_SUCCESS);
        std::vector<float> result(ggml_nelements(out));
        ggml_backend_tensor_get(out, result.data(), 0, ggml_nbytes(out));
        return result;
    }

   private:
    static inline const ggml_init_params kMemory{ggml_tensor_overhead() * 8 + ggml_graph_overhead(),
                                                 nullptr, true};
    ggml_context_ptr of_weights_, context_;
    ggml_backend_ptr backend_;
    ggml_backend_buffer_ptr weight_buffer_, buffer_;
    ggml_tensor* weights_;
};

/** [matrix][row][column], as the operator computes it. */
std::vector<float> multiplied(const Shape& s, const Inputs& in, int threads,
                              bool fallback = false) {
    Graph graph(s, in);
    ggml_tensor* wide =
        ggml_new_tensor_3d(graph.context(), GGML_TYPE_F32, s.width + s.gap, s.rows, s.matrices);
    ggml_tensor* x = ggml_view_3d(graph.context(), wide, s.width, s.rows, s.matrices, wide->nb[1],
                                  wide->nb[2], 0);
    ggml_tensor* out = ggml_mul_mat(graph.context(), graph.weights(), x);
    return graph.compute(out, threads, fallback, [&] {
        for (int row = 0; row < s.matrices * s.rows; ++row)
            ggml_backend_tensor_set(wide, in.x.data() + 1UL * row * s.width, row * wide->nb[1],
                                    s.width * sizeof(float));
    });
}

/** What rows hold once each block of them is rounded as `s.type` has it: a scale, then bytes. */
std::vector<float> rounded_rows(const Shape& s, const std::vector<float>& from) {
    if (s.type == GGML_TYPE_F32) return from;
    const bool is_wide = ggml_blck_size(s.type) == 256;
    const ggml_type type = is_wide ? GGML_TYPE_Q8_K : GGML_TYPE_Q8_0;
    const std::size_t block = ggml_blck_size(type);
    const auto count = static_cast<std::int64_t>(from.size());
    std::vector<char> bytes(ggml_row_size(type, count));
    ggml_get_type_traits_cpu(type)->from_float(from.data(), bytes.data(), count);
    std::vector<float> to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
        const char* at = bytes.data() + i / block * ggml_type_size(type);
        float scale;
        ggml_fp16_t half;
        std::memcpy(&scale, at, sizeof(scale));
        std::memcpy(&half, at, sizeof(half));
        if (!is_wide) scale = ggml_fp16_to_fp32(half);
        const std::size_t first = is_wide ? sizeof(scale) : sizeof(half);
        to[i] = scale * static_cast<std::int8_t>(at[first + i % block]);
    }
    return to;
}

/** The farthest `result` is from sums in double precision, in shares of the sum of all sizes. */
double error_of(const std::vector<float>& result, const Shape& s, const Inputs& in) {
    std::vector<float> weights(1UL * s.matrices * s.columns * s.width);
    if (const auto to_float = ggml_get_type_traits(s.type)->to_float)
        to_float(in.weights.data(), weights.data(), static_cast<std::int64_t>(weights.size()));
    else
        std::memcpy(weights.data(), in.weights.data(), in.weights.size());
    const std::vector<float> x = rounded_rows(s, in.x);
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
    s.repacked = random() % 3 == 0;
    s.type =
        s.repacked
            ? one_of(random, {GGML_TYPE_Q4_K, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4})
            : one_of(random, {GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                              GGML_TYPE_Q6_K, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
                              GGML_TYPE_Q8_0});
    if (!s.repacked && random() % 4 == 0) s.type = GGML_TYPE_F32;
    const auto block = s.type == GGML_TYPE_F32 ? 32 : static_cast<int>(ggml_blck_size(s.type));
    s.width = block * one_of(random, {1, 2, 3, 6, 19});
    s.columns = 8 * one_of(random, {3, 4, 5, 32, 97});
    if (!s.repacked) s.columns -= static_cast<int>(random() % 8);
    s.rows = 1 + static_cast<int>(random() % (random() % 2 ? 9 : 40));
    s.gap = one_of(random, {0, 0, 64});
    // As routers have; the gate of an expert that all share has one.
    if (s.type == GGML_TYPE_F32) s.columns = one_of(random, {1, 8, 27, 64, 128});
    return s;
}

TEST(random_shapes_agree_with_double_precision) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        const Shape s = random_shape(random);
        const Inputs in = random_inputs(s, random);
        // A sum of blocks in single precision.
        CHECK(error_of(multiplied(s, in, 1 + random() % 3), s, in) < 1e-6);
    }
}

TEST(other_types_and_several_matrices_are_ggmls) {
    std::mt19937 random(12);
    for (const ggml_type type : {GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_Q8_0}) {
        for (const int rows : {1, 6, 30}) {
            const Shape s{
                .type = type, .repacked = false, .columns = 24, .rows = rows, .matrices = 3};
            const Inputs in = random_inputs(s, random);
            CHECK(error_of(multiplied(s, in, 2), s, in) < 1e-6);
        }
    }
}

/** Whether weights may lie in `buffers`; asked as llama.cpp asks before it loads them. */
bool takes(ggml_backend_buffer_type_t buffers, const Shape& s) {
    if (!buffers) return false;  // another processor's
    ggml_context_ptr context(ggml_init({ggml_tensor_overhead() * 4, nullptr, true}));
    ggml_tensor* weights =
        ggml_new_tensor_3d(context.get(), s.type, s.width, s.columns, s.matrices);
    ggml_tensor* x = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, s.width, s.rows, s.matrices);
    ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(buffers, 0));
    weights->buffer = empty.get();
    return ggml_backend_dev_supports_op(processor(), ggml_mul_mat(context.get(), weights, x));
}

// As models with convolutions or states multiply: a group of rows for each sequence of a batch.
TEST(rows_in_groups_agree_with_double_precision_in_each_kind_of_memory) {
    std::mt19937 random(16);
    const int groups = 4;
    for (ggml_backend_buffer_type_t buffers :
         {ggml_backend_cpu_buffer_type(), buffers_named("CPU_REPACK"), buffers_named("AMX")}) {
        for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                                     GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS}) {
            for (const int rows : {1, 3, 33}) {
                const Shape s{.type = type, .width = 512, .columns = 160, .rows = groups * rows};
                if (!takes(buffers, s)) continue;
                const Inputs in = random_inputs(s, random);
                Graph graph(s, in, buffers);
                ggml_tensor* x =
                    ggml_new_tensor_3d(graph.context(), GGML_TYPE_F32, s.width, rows, groups);
                ggml_tensor* out = ggml_mul_mat(graph.context(), graph.weights(), x);
                const std::vector<float> result = graph.compute(out, 2, false, [&] {
                    ggml_backend_tensor_set(x, in.x.data(), 0, ggml_nbytes(x));
                });
                CHECK(error_of(result, s, in) < 1e-6);
            }
        }
    }
}

TEST(amx_gets_one_matrix_of_a_type_without_kernels_of_our_own) {
    ggml_backend_buffer_type_t amx = buffers_named("AMX");
    if (!amx) return;  // another processor
    CHECK(takes(amx, {.type = GGML_TYPE_IQ4_XS, .rows = 2}));
    CHECK(!takes(amx, {.type = GGML_TYPE_IQ4_XS, .rows = 2, .matrices = 3}));
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_F16})
        CHECK(!takes(amx, {.type = type, .rows = 2}));
}

TEST(a_row_keeps_its_bits_beside_other_rows_and_on_any_number_of_threads) {
    if (!ggml_cpu_has_avx2()) return;  // ggml's own, which does not promise it
    std::mt19937 random(13);
    for (int round = 0; round < 60; ++round) {
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

TEST(experts_give_their_rows_the_bits_that_their_matrix_gives_alone) {
    if (!ggml_cpu_has_avx2()) return;
    std::mt19937 random(15);
    for (int round = 0; round < 40; ++round) {
        Shape s = random_shape(random);
        s.columns = std::min(s.columns, 64);
        s.matrices = 5;
        const int used = 1 + static_cast<int>(random() % 3), tokens = s.rows;
        const bool own_rows =
            random() % 2;  // of each expert; otherwise a token's experts share one
        s.rows = own_rows ? used * tokens : tokens;
        Inputs in = random_inputs(s, random);
        in.x.resize(1UL * s.rows * s.width);
        std::vector<std::int32_t> chosen;
        for (int i = 0; i < used * tokens; ++i)
            chosen.push_back(static_cast<std::int32_t>(random() % 4));  // never the last

        Graph graph(s, in);
        ggml_tensor* x = ggml_new_tensor_3d(graph.context(), GGML_TYPE_F32, s.width,
                                            own_rows ? used : 1, tokens);
        ggml_tensor* ids = ggml_new_tensor_2d(graph.context(), GGML_TYPE_I32, used, tokens);
        ggml_tensor* out = ggml_mul_mat_id(graph.context(), graph.weights(), x, ids);
        const std::vector<float> together = graph.compute(out, 1 + round % 3, false, [&] {
            ggml_backend_tensor_set(x, in.x.data(), 0, ggml_nbytes(x));
            ggml_backend_tensor_set(ids, chosen.data(), 0, ggml_nbytes(ids));
        });

        Shape alone = s;
        alone.rows = alone.matrices = 1;
        alone.gap = 0;
        const std::size_t bytes = in.weights.size() / s.matrices;
        for (int i = 0; i < used * tokens; ++i) {
            const char* weights = in.weights.data() + chosen[i] * bytes;
            const float* row = in.x.data() + 1UL * (own_rows ? i : i / used) * s.width;
            const float* result = together.data() + 1UL * i * s.columns;
            CHECK_EQ(differences(
                         {result, result + s.columns},
                         multiplied(alone, {{weights, weights + bytes}, {row, row + s.width}}, 1)),
                     0);
        }
    }
}

TEST(one_row_of_q4_k_has_the_bits_of_ggmls_own) {
    if (!ggml_cpu_has_avx2()) return;
    std::mt19937 random(14);
    for (int round = 0; round < 100; ++round) {
        Shape s = random_shape(random);
        if (!s.repacked || s.type != GGML_TYPE_Q4_K) continue;
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
