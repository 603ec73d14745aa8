// Sampling on made-up logits; needs no model.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "llama/chain_sampler.h"

using namespace fermata;

namespace {

constexpr std::int32_t kVocabulary = 1000;
constexpr Token kEnd = 7;

std::vector<float> slope() {
    std::vector<float> logits(kVocabulary);
    for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>((i * 7919) % 1000) / 100.0f;
    return logits;
}

std::vector<Token> draw(const SamplingParams& params, int count,
                        const std::vector<float>& logits = slope()) {
    ChainSampler sampler(params, kVocabulary, kEnd);
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i)
        tokens.push_back(sampler.sample(logits));
    return tokens;
}

SamplingParams warm(std::uint32_t seed) {
    SamplingParams params;
    params.temperature = 1.0f;
    params.seed = seed;
    return params;
}

}  // namespace

TEST(a_seed_decides) {
    for (const std::uint32_t seed : {0u, 1u, 0xFFFFFFFFu})
        CHECK(draw(warm(seed), 50) == draw(warm(seed), 50));
    CHECK(draw(warm(1), 50) != draw(warm(2), 50));
}

TEST(top_k_one_is_the_best_token) {
    SamplingParams params = warm(3);
    params.top_k = 1;
    const auto logits = slope();
    const Token best =
        static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    for (const Token token : draw(params, 20))
        CHECK_EQ(token, best);
}

TEST(every_filter_keeps_likely_tokens) {
    for (int which = 0; which < 5; ++which) {
        SamplingParams params = warm(5);
        if (which == 0 || which == 4) params.top_k = 20;
        if (which == 1 || which == 4) params.top_p = 0.3f;
        if (which == 2 || which == 4) params.min_p = 0.8f;
        if (which == 3 || which == 4) params.typical_p = 0.2f;
        const auto logits = slope();
        for (const Token token : draw(params, 30))
            CHECK(logits[static_cast<std::size_t>(token)] > 5.0f);
    }
}

TEST(a_bias_of_minus_100_bans) {
    SamplingParams params;  // greedy with a bias
    const auto logits = slope();
    const Token best =
        static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    params.logit_bias = {{best, -100.0f}, {-5, 1.0f}, {kVocabulary, 1.0f}};
    CHECK(draw(params, 1).front() != best);
    params.logit_bias = {{42, 100.0f}};
    CHECK_EQ(draw(params, 1).front(), 42);
}

TEST(penalties_avoid_what_was_seen) {
    SamplingParams params;
    params.presence_penalty = 2.0f;
    params.penalty_last_n = 8;
    ChainSampler sampler(params, kVocabulary, kEnd);
    std::vector<float> logits(kVocabulary, 0.0f);
    logits[10] = 1.0f;
    logits[11] = 0.5f;
    CHECK_EQ(sampler.sample(logits), 10);
    CHECK_EQ(sampler.sample(logits), 11);
    const std::vector<Token> others = {100, 101, 102, 103, 104, 105, 106, 107};
    sampler.observe(others);  // 10 and 11 have left the window
    CHECK_EQ(sampler.sample(logits), 10);
}

TEST(top_n_sigma_keeps_what_is_near_the_best) {
    SamplingParams params = warm(5);
    params.temperature = 100.0f;  // without the filter all tokens are about as likely
    params.top_n_sigma = 0.5f;
    const auto logits = slope();  // 0 .. 9.99 evenly: the deviation is 2.89
    for (const Token token : draw(params, 200, logits))
        CHECK(logits[static_cast<std::size_t>(token)] >= 9.99f - 0.5f * 2.89f);
}

TEST(xtc_drops_the_likeliest_but_one_of_those_above_its_threshold) {
    SamplingParams params = warm(5);
    params.xtc_probability = 1.0f;
    params.xtc_threshold = 0.1f;
    std::vector<float> logits(kVocabulary, -50.0f);
    logits[1] = 2.0f;
    logits[2] = 1.5f;
    logits[3] = 1.0f;
    for (const Token token : draw(params, 50, logits))
        CHECK_EQ(token, 3);
}

TEST(a_dynamic_temperature_is_low_where_the_model_is_sure) {
    SamplingParams params = warm(5);
    params.temperature = 20.0f;
    const auto count_best = [&](const std::vector<float>& logits) {
        const auto tokens = draw(params, 200, logits);
        return std::ranges::count(tokens, 1);
    };
    std::vector<float> sure(kVocabulary, 0.0f);
    sure[1] = 15.0f;
    CHECK(count_best(sure) < 50);
    params.dynatemp_range = 20.0f;
    CHECK(count_best(sure) > 150);
}

TEST(mirostat_keeps_surprise_near_its_target) {
    for (const int version : {1, 2}) {
        SamplingParams low = warm(5);
        low.mirostat = version;
        low.mirostat_tau = 0.1f;
        SamplingParams high = low;
        high.mirostat_tau = 9.0f;
        std::vector<float> logits(kVocabulary);  // as of words: version 1 estimates their exponent
        for (std::size_t i = 0; i < logits.size(); ++i)
            logits[i] = -1.2f * std::log(static_cast<float>(i + 1));
        const auto mean = [&](const SamplingParams& params) {
            double sum = 0.0;
            for (const Token token : draw(params, 200, logits))
                sum += static_cast<double>(logits[static_cast<std::size_t>(token)]);
            return sum / 200;
        };
        CHECK(mean(low) > mean(high) + 0.5);
    }
}

TEST(dry_breaks_a_repetition) {
    SamplingParams params;  // greedy
    params.dry = {.multiplier = 5.0f, .base = 2.0f, .allowed_length = 2, .penalty_last_n = 64};
    DrySamplers makers(nullptr);
    ChainSampler sampler(params, kVocabulary, kEnd, makers.make(params.dry));
    const std::vector<Token> history = {20, 21, 22, 23, 20, 21};
    sampler.observe(history);
    std::vector<float> logits(kVocabulary, 0.0f);
    logits[22] = 4.0f;  // would go on with 20 21 22
    logits[30] = 1.0f;
    CHECK_EQ(sampler.sample(logits), 30);
    CHECK_EQ(sampler.sample(logits), 22);  // after 30 nothing is repeated

    SamplerPtr first = makers.make(params.dry);
    CHECK(makers.make({}) == nullptr);
    CHECK(first != makers.make(params.dry));  // each sequence has its own
}

TEST(logits_that_are_no_numbers_are_survived) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float temperature : {0.0f, 0.7f}) {
        for (int which = 0; which < 6; ++which) {
            SamplingParams params = warm(1);
            params.temperature = temperature;
            params.typical_p = which == 1 ? 0.5f : 1.0f;
            params.mirostat = which == 2 || which == 3 ? which - 1 : 0;
            params.top_n_sigma = which == 4 ? 1.0f : 0.0f;
            if (which == 5) params.xtc_probability = params.dynatemp_range = 1.0f;
            params.top_p = 0.9f;
            params.logit_bias = {{1, 0.5f}};
            CHECK_EQ(draw(params, 1, std::vector<float>(kVocabulary, nan)).front(), kEnd);
            CHECK_EQ(draw(params, 1, std::vector<float>(kVocabulary, -infinity)).front(), kEnd);
            std::vector<float> one(kVocabulary, -infinity);
            one[500] = -3.0f;
            CHECK_EQ(draw(params, 1, one).front(), 500);
            one.assign(kVocabulary, 0.0f);
            one[600] = infinity;
            one[601] = nan;
            CHECK_EQ(draw(params, 1, one).front(), 600);
        }
    }
}

TEST_MAIN()
