// native/kernels: attention against sums in double precision, and that a row's bits are its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"

namespace {

struct Shape {
    int key_size = 64, value_size = 64, heads = 6, kv_heads = 2, tokens = 1, streams = 1;
    int positions = 256;
    ggml_type keys = GGML_TYPE_F16, values = GGML_TYPE_F16;
    float softcap = 0;
    bool sinks = false, mask = true;
};

struct Inputs {
    std::vector<float> q, k, v, sinks;  // [stream][head][token or position][component]
    std::vector<float> mask;            // [stream][token][position]
};

Inputs random_inputs(const Shape& s, std::mt19937& random) {
    std::normal_distribution<float> normal;
    const auto some = [&](std::size_t count) {
        std::vector<float> all(count);
        for (float& x : all)
            x = normal(random);
        return all;
    };
    Inputs in{some(1UL * s.streams * s.heads * s.tokens * s.key_size),
              some(1UL * s.streams * s.kv_heads * s.positions * s.key_size),
              some(1UL * s.streams * s.kv_heads * s.positions * s.value_size), some(s.heads),
              std::vector<float>(1UL * s.streams * s.tokens * s.positions, 0)};
    // Holes of all lengths, so that blocks of keys are seen whole, in part and not at all.
    for (std::size_t i = 0; i < in.mask.size();) {
        const std::size_t run = 1 + random() % (random() % 2 ? 5 : 300);
        const float value = random() % 2 ? -INFINITY : random() % 4 ? 0 : -1.5f;
        for (std::size_t end = std::min(in.mask.size(), i + run); i < end; ++i)
            in.mask[i] = value;
    }
    // The last token of a stream sees nothing at all now and then, every other one its last key.
    for (int row = 0; row < s.streams * s.tokens; ++row) {
        float* begin = in.mask.data() + 1UL * row * s.positions;
        if (row % s.tokens == s.tokens - 1 && random() % 4 == 0) {
            std::fill_n(begin, s.positions, -INFINITY);
        } else {
            begin[s.positions - 1] = 0;
        }
    }
    return in;
}

std::vector<char> packed(ggml_type type, const std::vector<float>& from, int row) {
    std::vector<char> to(ggml_row_size(type, row) * (from.size() / row));
    ggml_quantize_chunk(type, from.data(), to.data(), 0, from.size() / row, row, nullptr);
    return to;
}

/** What the cache holds of `values` once they went through `type`. */
std::vector<float> rounded(ggml_type type, const std::vector<float>& from, int row) {
    if (type == GGML_TYPE_F32) return from;
    const std::vector<char> bytes = packed(type, from, row);
    std::vector<float> to(from.size());
    ggml_get_type_traits(type)->to_float(bytes.data(), to.data(),
                                         static_cast<std::int64_t>(to.size()));
    return to;
}

/** [stream][token][head][component], as the operator computes it. */
std::vector<float> attended(const Shape& s, const Inputs& in, int threads, bool fallback = false) {
    ggml_init_params memory{ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true};
    ggml_context_ptr context(ggml_init(memory));
    ggml_backend_ptr backend(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(backend.get(), threads);
    ggml_backend_cpu_set_use_ref(backend.get(), fallback);
    ggml_tensor* q =
        ggml_new_tensor_4d(context.get(), GGML_TYPE_F32, s.key_size, s.tokens, s.heads, s.streams);
    ggml_tensor* k =
        ggml_new_tensor_4d(context.get(), s.keys, s.key_size, s.positions, s.kv_heads, s.streams);
    ggml_tensor* v = ggml_new_tensor_4d(context.get(), s.values, s.value_size, s.positions,
                                        s.kv_heads, s.streams);
    ggml_tensor* mask = s.mask ? ggml_new_tensor_4d(context.get(), GGML_TYPE_F16, s.positions,
                                                    s.tokens, 1, s.streams)
                               : nullptr;
    ggml_tensor* sinks =
        s.sinks ? ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, s.heads) : nullptr;
    ggml_tensor* out = ggml_flash_attn_ext(
        context.get(), q, k, v, mask, 1 / std::sqrt(static_cast<float>(s.key_size)), 0, s.softcap);
    if (sinks) ggml_flash_attn_ext_add_sinks(out, sinks);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, out);
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    const auto fill = [](ggml_tensor* tensor, const std::vector<float>& from, int row) {
        const std::vector<char> bytes = packed(tensor->type, from, row);
        ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
    };
    fill(q, in.q, s.key_size);
    fill(k, in.k, s.key_size);
    fill(v, in.v, s.value_size);
    if (mask) fill(mask, in.mask, s.positions);
    if (sinks) fill(sinks, in.sinks, s.heads);
    CHECK(ggml_backend_graph_compute(backend.get(), graph) == GGML_STATUS_SUCCESS);
    std::vector<float> result(ggml_nelements(out));
    ggml_backend_tensor_get(out, result.data(), 0, ggml_nbytes(out));
    return result;
}

std::vector<float> expected(const Shape& s, const Inputs& in) {
    const std::vector<float> k = rounded(s.keys, in.k, s.key_size);
    const std::vector<float> v = rounded(s.values, in.v, s.value_size);
    std::vector<float> out(1UL * s.streams * s.tokens * s.heads * s.value_size);
    const int group = s.heads / s.kv_heads;
    for (int stream = 0; stream < s.streams; ++stream) {
        for (int t = 0; t < s.tokens; ++t) {
            for (int h = 0; h < s.heads; ++h) {
                const float* q =
                    in.q.data() + ((1UL * stream * s.heads + h) * s.tokens + t) * s.key_size;
                const std::size_t cache = (1UL * stream * s.kv_heads + h / group) * s.positions;
                std::vector<double> scores(s.positions);
                double top = s.sinks ? in.sinks[h] : -INFINITY;
                for (int i = 0; i < s.positions; ++i) {
                    double sum = 0;
                    for (int d = 0; d < s.key_size; ++d)
                        sum += double(q[d]) * k[(cache + i) * s.key_size + d];
                    sum /= std::sqrt(double(s.key_size));
                    if (s.softcap != 0) sum = s.softcap * std::tanh(sum / s.softcap);
                    if (s.mask) sum += in.mask[(1UL * stream * s.tokens + t) * s.positions + i];
                    scores[i] = sum;
                    top = std::max(top, sum);
                }
                if (top == -INFINITY) continue;
                double weights = s.sinks ? std::exp(in.sinks[h] - top) : 0;
                std::vector<double> values(s.value_size);
                for (int i = 0; i < s.positions; ++i) {
                    const double weight = std::exp(scores[i] - top);
                    weights += weight;
                    for (int d = 0; d < s.value_size; ++d)
                        values[d] += weight * v[(cache + i) * s.value_size + d];
                }
                float* to =
                    out.data() + ((1UL * stream * s.tokens + t) * s.heads + h) * s.value_size;
                for (int d = 0; d < s.value_size; ++d)
                    to[d] = static_cast<float>(values[d] / weights);
            }
        }
    }
    return out;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
    CHECK_EQ(a.size(), b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double apart = std::abs(double(a[i]) - b[i]);
        most = std::isnan(apart) ? INFINITY : std::max(most, apart);
    }
    return most;
}

template <typename Value>
Value one_of(std::mt19937& random, std::initializer_list<Value> values) {
    return *(values.begin() + random() % values.size());
}

TEST(random_shapes_agree_with_double_precision) {
    std::mt19937 random(7);
    for (int round = 0; round < 150; ++round) {
        Shape s;
        s.key_size = one_of(random, {32, 64, 80, 96, 128, 256});
        s.value_size = one_of(random, {s.key_size, s.key_size, 64});
        s.kv_heads = one_of(random, {1, 2, 3});
        s.heads = s.kv_heads * one_of(random, {1, 2, 3, 7, 8});
        s.tokens = one_of(random, {1, 1, 2, 5, 20, 70});
        s.streams = one_of(random, {1, 1, 2, 4});
        s.positions = one_of(random, {1, 7, 64, 200, 256, 300, 1024});
        s.keys = one_of(random, {GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0});
        s.values = one_of(random, {GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0});
        if (s.key_size % 32 != 0) s.keys = GGML_TYPE_F16;
        if (s.value_size % 32 != 0) s.values = GGML_TYPE_F16;
        s.softcap = one_of(random, {0.0f, 0.0f, 20.0f});
        s.sinks = random() % 3 == 0;
        s.mask = random() % 4 != 0;
        const Inputs in = random_inputs(s, random);
        const double apart = farthest(attended(s, in, 1 + random() % 3), expected(s, in));
        // Sums of at most 1,024 weighted values of about 1, in single precision.
        CHECK(apart < 2e-5);
    }
}

/** The operands of one token, or of one stream, of a larger operation. */
Inputs part_of(const Shape& s, const Inputs& in, int stream, int token) {
    Inputs part{{}, {}, {}, in.sinks, {}};
    const auto add = [](std::vector<float>& to, const std::vector<float>& from, std::size_t index,
                        std::size_t size) {
        to.insert(to.end(), from.begin() + index * size, from.begin() + (index + 1) * size);
    };
    for (int h = 0; h < s.heads; ++h)
        add(part.q, in.q, (1UL * stream * s.heads + h) * s.tokens + token, s.key_size);
    add(part.k, in.k, stream, 1UL * s.kv_heads * s.positions * s.key_size);
    add(part.v, in.v, stream, 1UL * s.kv_heads * s.positions * s.value_size);
    add(part.mask, in.mask, 1UL * stream * s.tokens + token, s.positions);
    return part;
}

/** Computed by itself, a token of a stream has the bits that it has in `together`. */
void check_alone(const Shape& s, const Inputs& in, int stream, int token,
                 const std::vector<float>& together) {
    Shape alone = s;
    alone.streams = alone.tokens = 1;
    const std::size_t size = 1UL * s.heads * s.value_size;
    const auto begin =
        together.begin() +
        static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(stream * s.tokens + token));
    const std::vector<float> own(begin, begin + static_cast<std::ptrdiff_t>(size));
    CHECK_EQ(farthest(own, attended(alone, part_of(s, in, stream, token), 2)), 0.0);
}

TEST(a_row_keeps_its_bits_beside_other_streams_and_on_any_number_of_threads) {
    std::mt19937 random(8);
    for (int round = 0; round < 40; ++round) {
        Shape s;
        s.kv_heads = one_of(random, {1, 2, 3});
        s.heads = s.kv_heads * one_of(random, {1, 3});
        s.streams = one_of(random, {2, 3, 8});
        s.positions = one_of(random, {256, 300, 1024, 5000});
        s.keys = one_of(random, {GGML_TYPE_F16, GGML_TYPE_Q8_0});
        const Inputs in = random_inputs(s, random);
        const std::vector<float> together = attended(s, in, 1);
        CHECK_EQ(farthest(together, attended(s, in, 3)), 0.0);
        for (int stream = 0; stream < s.streams; ++stream)
            check_alone(s, in, stream, 0, together);
    }
}

// So a draft changes no token.
TEST(a_token_keeps_its_bits_beside_others_of_its_sequence) {
    std::mt19937 random(11);
    for (int round = 0; round < 40; ++round) {
        Shape s;
        s.key_size = one_of(random, {64, 80, 128, 256});
        s.value_size = one_of(random, {s.key_size, 64});
        s.kv_heads = one_of(random, {1, 2, 4});
        s.heads = s.kv_heads * one_of(random, {1, 3, 4, 6, 7, 8, 16});
        s.tokens = one_of(random, {2, 3, 5, 16});
        s.positions = one_of(random, {256, 300, 1024});
        s.keys = one_of(random, {GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F32});
        const Inputs in = random_inputs(s, random);
        const std::vector<float> together = attended(s, in, 2);
        for (int token = 0; token < s.tokens; ++token)
            check_alone(s, in, 0, token, together);
    }
}

TEST(a_short_prompt_deep_in_a_context_has_the_same_bits_on_any_number_of_threads) {
    std::mt19937 random(10);
    for (const int tokens : {7, 33, 64, 200}) {
        Shape s;
        s.tokens = tokens;
        s.positions = 1600;
        const Inputs in = random_inputs(s, random);
        const std::vector<float> alone = attended(s, in, 1);
        for (const int threads : {2, 3})
            CHECK_EQ(farthest(alone, attended(s, in, threads)), 0.0);
    }
}

TEST(the_fallback_is_what_ggml_computes) {
    std::mt19937 random(9);
    Shape s;
    s.tokens = 5;
    s.mask = false;
    const Inputs in = random_inputs(s, random);
    const double apart = farthest(attended(s, in, 2, true), expected(s, in));
    CHECK(apart < 2e-2);  // its sums are in half precision
    CHECK(apart > 2e-5);
}

}  // namespace

TEST_MAIN()
