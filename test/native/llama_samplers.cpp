// Sampling on made-up logits; needs no model.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "llama.h"
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

Token next(ChainSampler& sampler, std::span<const float> logits, TokenMask mask = {}) {
    const Token token = sampler.sample(logits, mask);
    sampler.observe(std::span(&token, 1));
    return token;
}

SamplingParams warm(std::uint32_t seed) {
    SamplingParams params;
    params.temperature = 1.0f;
    params.seed = seed;
    return params;
}

// What a round draws from its beginning at `position` on, after `drawn` tokens of the round before.
std::vector<Token> draw_round(std::uint32_t seed, std::int32_t position, int drawn) {
    ChainSampler sampler(warm(seed), kVocabulary, kEnd);
    const auto logits = slope();
    for (int i = 0; i < drawn; ++i)
        sampler.sample(logits);
    sampler.begin_round(position);
    std::vector<Token> tokens;
    for (int i = 0; i < 20; ++i)
        tokens.push_back(sampler.sample(logits));
    return tokens;
}

// llama.cpp's own samplers, with a candidate for each allowed entry of the vocabulary; bias and
// penalties the plain way.
class WholeChain {
   public:
    // `top_p_of_doubles`: its sums are not those of llama.cpp, which are rounded to floats.
    WholeChain(const SamplingParams& params, bool top_p_of_doubles)
        : params_(params), top_p_of_doubles_(top_p_of_doubles) {
        const auto keep = static_cast<std::size_t>(params.min_keep);
        llama_sampler_chain_params chain_params = llama_sampler_chain_default_params();
        chain_.reset(llama_sampler_chain_init(chain_params));
        const auto add = [this](llama_sampler* next) {
            llama_sampler_chain_add(chain_.get(), next);
        };
        dry_ = makers_.make(params.dry);
        if (params.temperature <= 0.0f) {
            add(llama_sampler_init_greedy());
            return;
        }
        if (params.mirostat == 0) {
            if (params.top_k > 0)
                add(llama_sampler_init_top_k(std::max(params.top_k, params.min_keep)));
            if (params.typical_p < 1.0f) add(llama_sampler_init_typical(params.typical_p, keep));
            if (params.top_p < 1.0f && !top_p_of_doubles)
                add(llama_sampler_init_top_p(params.top_p, keep));
            if (params.min_p > 0.0f) add(llama_sampler_init_min_p(params.min_p, keep));
            if (params.xtc_probability > 0.0f) {
                add(llama_sampler_init_xtc(params.xtc_probability, params.xtc_threshold, keep,
                                           params.seed));
            }
        }
        add(llama_sampler_init_temp_ext(params.temperature, params.dynatemp_range,
                                        params.dynatemp_exponent));
        if (params.mirostat == 0) add(llama_sampler_init_dist(params.seed));
        if (params.mirostat == 1) {
            add(llama_sampler_init_mirostat(kVocabulary, params.seed, params.mirostat_tau,
                                            params.mirostat_eta, 100));
        }
        if (params.mirostat == 2) {
            add(llama_sampler_init_mirostat_v2(params.seed, params.mirostat_tau,
                                               params.mirostat_eta));
        }
    }

    Token sample(std::vector<float> logits, TokenMask mask) {
        std::set<Token> banned;
        for (const auto& [token, bias] : params_.logit_bias) {
            if (bias <= kBanningBias) banned.insert(token);
            logits[static_cast<std::size_t>(token)] += bias;
        }
        std::map<Token, int> seen;
        const auto last = static_cast<std::size_t>(params_.penalty_last_n);
        for (std::size_t i = 0; i < std::min(last, history_.size()); ++i)
            seen[history_[history_.size() - 1 - i]] += 1;
        for (const auto& [token, count] : seen) {
            float& logit = logits[static_cast<std::size_t>(token)];
            logit = logit <= 0.0f ? logit * params_.repeat_penalty : logit / params_.repeat_penalty;
            logit -=
                static_cast<float>(count) * params_.frequency_penalty + params_.presence_penalty;
        }
        std::vector<llama_token_data> all;
        for (Token token = 0; token < kVocabulary; ++token) {
            if (allows(mask, token) && !banned.contains(token))
                all.push_back({token, logits[static_cast<std::size_t>(token)], 0.0f});
        }
        llama_token_data_array array{all.data(), all.size(), -1, false};
        if (dry_) llama_sampler_apply(dry_.get(), &array);
        if (top_p_of_doubles_) cut(array);
        llama_sampler_apply(chain_.get(), &array);
        const Token token = array.data[array.selected].id;
        if (dry_) llama_sampler_accept(dry_.get(), token);
        history_.push_back(token);
        return token;
    }

   private:
    void cut(llama_token_data_array& array) const {
        std::sort(array.data, array.data + array.size,
                  [](const auto& a, const auto& b) { return a.logit > b.logit; });
        const auto weight = [&](std::size_t i) {
            return std::exp(static_cast<double>(array.data[i].logit - array.data[0].logit));
        };
        double total = 0.0;
        for (std::size_t i = 0; i < array.size; ++i)
            total += weight(i);
        const auto keep = static_cast<std::size_t>(params_.min_keep);
        double sum = 0.0;
        for (std::size_t i = 0; i < array.size; ++i) {
            sum += weight(i);
            if (sum >= static_cast<double>(params_.top_p) * total && i + 1 >= keep)
                array.size = i + 1;
        }
        array.sorted = true;
    }

    SamplingParams params_;
    bool top_p_of_doubles_;
    DrySamplers makers_{nullptr};
    SamplerPtr dry_;
    SamplerPtr chain_;
    std::vector<Token> history_;
};

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
    CHECK_EQ(next(sampler, logits), 10);
    CHECK_EQ(next(sampler, logits), 11);
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
    CHECK_EQ(next(sampler, logits), 30);
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

// Each parameter is off in some cases. No two logits are equal.
TEST(tokens_are_those_of_the_whole_chain) {
    int rounded = 0;
    for (std::uint32_t test = 0; test < 3000; ++test) {
        std::mt19937 random(test);
        const auto one_in = [&](unsigned n) { return random() % n == 0; };
        const auto some = [&](auto... values) {
            const std::vector all = {values...};
            return all[random() % all.size()];
        };
        SamplingParams params;
        params.seed = test;
        params.temperature = one_in(8) ? 0.0f : some(0.3f, 0.8f, 1.0f, 1.7f);
        params.top_k = some(0, 0, 1, 3, 40, 200, kVocabulary, 5000);
        params.top_p = some(1.0f, 0.95f, 0.5f, 0.999f, 0.01f);
        params.min_p = some(0.0f, 0.0f, 0.05f, 0.9f);
        params.typical_p = one_in(6) ? 0.6f : 1.0f;
        params.min_keep = one_in(6) ? 7 : 1;
        if (one_in(6)) params.xtc_probability = 0.7f;
        if (one_in(6)) params.dynatemp_range = 0.2f;
        if (one_in(8)) params.mirostat = some(1, 2);
        if (one_in(3)) params.repeat_penalty = 1.3f;
        if (one_in(3)) params.frequency_penalty = some(0.5f, -0.5f);
        params.penalty_last_n = some(0, 3, 64);
        if (one_in(3)) {
            params.dry = {.multiplier = 2.0f, .allowed_length = 1, .penalty_last_n = some(4, 64)};
        }
        while (one_in(2)) {
            params.logit_bias.emplace_back(static_cast<Token>(random() % kVocabulary),
                                           some(3.0f, -2.0f, -100.0f));
        }
        std::vector<std::uint32_t> mask;
        if (one_in(2)) {
            mask.assign(mask_words(kVocabulary), some(0u, ~0u));
            for (int i = 0; i < 40; ++i)
                mask[random() % mask.size()] ^= 1u << random() % kMaskWordBits;
        }
        DrySamplers makers(nullptr);
        ChainSampler ours(params, kVocabulary, kEnd, makers.make(params.dry));
        const bool finds_top_p = params.temperature > 0.0f && params.mirostat == 0 &&
                                 params.top_k == 0 && params.typical_p == 1.0f &&
                                 params.top_p < 1.0f;
        WholeChain theirs(params, finds_top_p);
        WholeChain with_floats(params, false);
        // Within 60 of the highest, where typical_p and Mirostat would drop.
        std::normal_distribution<float> normal(0.0f, some(0.5f, 3.0f, 6.0f));
        std::set<float> used;
        std::vector<float> logits(kVocabulary);
        for (float& logit : logits) {
            while (!used.insert(logit = normal(random)).second) {
            }
        }
        for (int i = 0; i < 6; ++i) {
            const Token expected = theirs.sample(logits, mask);
            if (finds_top_p && with_floats.sample(logits, mask) != expected) ++rounded;
            if (const Token token = next(ours, logits, mask); token != expected) {
                check::fail(__FILE__, __LINE__,
                            "case " + std::to_string(test) + ", token " + std::to_string(i) + ": " +
                                std::to_string(token) + " instead of " + std::to_string(expected));
            }
            std::ranges::rotate(logits, logits.begin() + 100 + random() % 50);
        }
    }
    CHECK(rounded <= 6);  // what is behind a different token differs, too
}

TEST(of_equal_logits_the_lower_id_goes_first) {
    SamplingParams params = warm(1);
    params.top_k = 3;
    std::vector<float> logits(kVocabulary, 1.0f);
    logits[900] = 2.0f;
    std::set<Token> drawn;
    for (const Token token : draw(params, 100, logits))
        drawn.insert(token);
    CHECK(drawn == (std::set<Token>{0, 1, 900}));
}

TEST_MAIN()

TEST(a_draw_tells_what_was_left_to_draw_from) {
    SamplingParams params = warm(9);
    params.top_k = 3;
    params.temperature = 0.5f;
    params.logit_bias = {{5, 100.0f}};
    std::vector<float> logits(kVocabulary, 0.0f);
    logits[1] = 2.0f;
    logits[2] = 1.0f;
    logits[3] = 1.5f;
    logits[5] = -98.5f;  // 1.5 with its bias
    ChainSampler sampler(params, kVocabulary, kEnd);
    const Token token = sampler.sample(logits);
    const TokenLogprobs draw = sampler.draw(token, 1000);
    // 1 has twice the temperature's share: e^4 beside e^3 and e^3.
    const double sum = std::exp(4.0) + 2 * std::exp(3.0);
    CHECK_EQ(draw.top.size(), 3u);
    CHECK(draw.top[0].first == 1 && draw.top[1].first == 3 && draw.top[2].first == 5);
    CHECK(std::abs(std::exp(draw.top[0].second) - std::exp(4.0) / sum) < 1e-5);
    CHECK(std::abs(std::exp(draw.top[2].second) - std::exp(3.0) / sum) < 1e-5);
    for (const auto& [id, logprob] : draw.top) {
        if (id == token) CHECK_EQ(draw.logprob, logprob);
    }
    CHECK_EQ(sampler.draw(token, 2).top.size(), 2u);
}

TEST(what_was_not_drawn_was_certain) {
    SamplingParams params;
    params.temperature = 0.0f;
    ChainSampler greedy(params, kVocabulary, kEnd);
    const Token token = greedy.sample(slope());
    const TokenLogprobs draw = greedy.draw(token, 5);
    CHECK_EQ(draw.logprob, 0.0f);
    CHECK_EQ(draw.top.size(), 1u);
    ChainSampler warm_one(warm(1), kVocabulary, kEnd);
    warm_one.sample(slope());
    // A token that a grammar forces, behind a drawn one.
    warm_one.skip(3);
    CHECK_EQ(warm_one.draw(3, 5).logprob, 0.0f);
}

// Another process has drawn nothing of the round before.
TEST(a_round_draws_by_its_seed_and_position_alone) {
    const auto first = draw_round(5, 400, 0);
    CHECK(draw_round(5, 400, 17) == first);
    CHECK(draw_round(5, 401, 0) != first);
    CHECK(draw_round(6, 400, 0) != first);
    CHECK(draw(warm(5), 20) != first);
}
