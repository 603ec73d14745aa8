// Log-probabilities of the whole engine against a plain forward pass of llama.cpp, which knows no
// scheduler and no cache of ours. On a real model: FERMATA_TEST_MODEL, or the first argument.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "llama.h"
#include "real_model.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int32_t kGenerated = 24;
constexpr std::int32_t kTop = 20;

std::vector<Token> prompt() {
    return model->tokenizer()
        .tokenize("The capital of France is Paris. The capital of", "", true)
        .value();
}

// One context, one row a step.
class PlainModel {
   public:
    PlainModel() {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 512;
        params.n_threads = params.n_threads_batch = 1;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;  // as BackendOptions
        context_.reset(llama_init_from_model(model->handle(), params));
        if (!context_) check::fail(__FILE__, __LINE__, "no context");
    }

    // Logarithms of the softmax behind `tokens`.
    std::vector<double> logprobs(std::vector<Token> tokens) {
        llama_batch batch =
            llama_batch_get_one(tokens.data(), static_cast<std::int32_t>(tokens.size()));
        CHECK_EQ(llama_decode(context_.get(), batch), 0);
        const float* logits = llama_get_logits_ith(context_.get(), -1);
        const auto size = static_cast<std::size_t>(model->vocabulary().size());
        double sum = 0.0;
        for (std::size_t i = 0; i < size; ++i)
            sum += std::exp(static_cast<double>(logits[i]));
        std::vector<double> result;
        for (std::size_t i = 0; i < size; ++i)
            result.push_back(static_cast<double>(logits[i]) - std::log(sum));
        return result;
    }

   private:
    struct Free {
        void operator()(llama_context* context) const { llama_free(context); }
    };
    std::unique_ptr<llama_context, Free> context_;
};

struct Sampled {
    Token token;
    TokenLogprobs logprobs;
};

std::vector<Sampled> generate(const SamplingParams& sampling) {
    BackendOptions options;
    options.slot_count = 2;
    options.cells_per_sequence = 512;
    auto backend = LlamaBackend::create(model, options);
    if (!backend.ok()) check::fail(__FILE__, __LINE__, backend.error().message);
    Scheduler scheduler({}, *backend.value());
    SubmitRequest request{.id = 1, .prompt = prompt(), .sampling = sampling};
    request.limits.max_tokens = kGenerated;
    request.top_logprobs = kTop;
    scheduler.submit(request);
    std::vector<Sampled> sampled;
    while (scheduler.step(0)) {
        for (const Event& event : scheduler.take_events().events) {
            for (std::size_t i = 0; i < event.logprobs.size(); ++i)
                sampled.push_back({event.tokens[i], event.logprobs[i]});
        }
    }
    return sampled;
}

bool near(double a, double b) {
    return std::abs(a - b) < 1e-4;
}

void check_against_plain(const SamplingParams& sampling) {
    const auto sampled = generate(sampling);
    CHECK(!sampled.empty());
    PlainModel plain;
    auto expected = plain.logprobs(prompt());
    for (const auto& [token, logprobs] : sampled) {
        CHECK(near(logprobs.logprob, expected[static_cast<std::size_t>(token)]));
        CHECK_EQ(logprobs.top.size(), static_cast<std::size_t>(kTop));
        double total = 0.0;
        double last = 0.0;
        for (const auto& [candidate, logprob] : logprobs.top) {
            CHECK(near(logprob, expected[static_cast<std::size_t>(candidate)]));
            CHECK(logprob <= last);
            last = logprob;
            total += std::exp(logprob);
        }
        CHECK(total < 1.0001);
        expected = plain.logprobs({token});
    }
}

}  // namespace

TEST(greedy_tokens_have_the_logprobs_of_a_plain_pass) {
    check_against_plain({});
}

// What bends the choice does not bend the numbers.
TEST(bias_penalties_temperature_and_filters_do_not_change_them) {
    SamplingParams sampling;
    sampling.temperature = 1.5f;
    sampling.seed = 3;
    sampling.top_k = 50;
    sampling.min_p = 0.01f;
    sampling.frequency_penalty = 1.0f;
    sampling.logit_bias = {{400, 3.0f}, {401, -100.0f}};
    check_against_plain(sampling);
}

MODEL_TEST_MAIN()
