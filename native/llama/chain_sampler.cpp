#include "llama/chain_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/samplers.h"
#include "llama.h"

namespace fermata {

namespace {

// llama.cpp's partial sort scales logits to integers: keep them where that cannot overflow.
constexpr float kLargestLogit = 1e6f;
// llama.cpp's typical_p and Mirostat take the logarithm of every probability: keep those above
// zero.
constexpr float kTypicalRange = 60.0f;
// What Mirostat estimates the distribution from; llama-server's number.
constexpr std::int32_t kMirostatTokens = 100;

void add_filters(llama_sampler* chain, const SamplingParams& params, std::uint32_t seed) {
    const auto keep = static_cast<std::size_t>(params.min_keep);
    if (params.top_k > 0) {
        llama_sampler_chain_add(chain,
                                llama_sampler_init_top_k(std::max(params.top_k, params.min_keep)));
    }
    if (params.typical_p < 1.0f)
        llama_sampler_chain_add(chain, llama_sampler_init_typical(params.typical_p, keep));
    if (params.top_p < 1.0f)
        llama_sampler_chain_add(chain, llama_sampler_init_top_p(params.top_p, keep));
    if (params.min_p > 0.0f)
        llama_sampler_chain_add(chain, llama_sampler_init_min_p(params.min_p, keep));
    if (params.xtc_probability > 0.0f) {
        llama_sampler_chain_add(chain, llama_sampler_init_xtc(params.xtc_probability,
                                                              params.xtc_threshold, keep, seed));
    }
}

llama_sampler* make_chain(const SamplingParams& params, std::int32_t vocabulary_size) {
    llama_sampler_chain_params chain_params = llama_sampler_chain_default_params();
    chain_params.no_perf = true;
    llama_sampler* chain = llama_sampler_chain_init(chain_params);
    if (params.temperature <= 0.0f) {
        llama_sampler_chain_add(chain, llama_sampler_init_greedy());
        return chain;
    }
    // The largest seed means "random" to llama.cpp.
    const std::uint32_t seed =
        params.seed == LLAMA_DEFAULT_SEED ? LLAMA_DEFAULT_SEED - 1 : params.seed;
    if (params.mirostat == 0) add_filters(chain, params, seed);
    llama_sampler_chain_add(chain,
                            llama_sampler_init_temp_ext(params.temperature, params.dynatemp_range,
                                                        params.dynatemp_exponent));
    if (params.mirostat == 1) {
        llama_sampler_chain_add(
            chain, llama_sampler_init_mirostat(vocabulary_size, seed, params.mirostat_tau,
                                               params.mirostat_eta, kMirostatTokens));
    } else if (params.mirostat == 2) {
        llama_sampler_chain_add(
            chain, llama_sampler_init_mirostat_v2(seed, params.mirostat_tau, params.mirostat_eta));
    } else {
        llama_sampler_chain_add(chain, llama_sampler_init_dist(seed));
    }
    return chain;
}

float highest_logit(const llama_token_data_array& candidates) {
    float highest = candidates.data[0].logit;
    for (std::size_t i = 1; i < candidates.size; ++i)
        highest = std::max(highest, candidates.data[i].logit);
    return highest;
}

// `deviations` standard deviations below the highest logit.
float sigma_floor(const llama_token_data_array& candidates, float deviations) {
    const auto count = static_cast<double>(candidates.size);
    double sum = 0.0;
    for (std::size_t i = 0; i < candidates.size; ++i)
        sum += static_cast<double>(candidates.data[i].logit);
    double squares = 0.0;
    for (std::size_t i = 0; i < candidates.size; ++i)
        squares += std::pow(static_cast<double>(candidates.data[i].logit) - sum / count, 2);
    return highest_logit(candidates) - deviations * static_cast<float>(std::sqrt(squares / count));
}

}  // namespace

Penalties::Penalties(const SamplingParams& params)
    : active_(params.penalty_last_n > 0 &&
              (params.repeat_penalty != 1.0f || params.frequency_penalty != 0.0f ||
               params.presence_penalty != 0.0f)),
      repeat_(params.repeat_penalty),
      frequency_(params.frequency_penalty),
      presence_(params.presence_penalty),
      limit_(active_ ? static_cast<std::size_t>(params.penalty_last_n) : 0) {}

void Penalties::observe(Token token) {
    if (!active_) return;
    if (window_.size() < limit_) {
        window_.push_back(token);
        return;
    }
    window_[oldest_] = token;
    oldest_ = (oldest_ + 1) % limit_;
}

void Penalties::apply(std::span<float> logits) {
    if (!active_) return;
    sorted_.assign(window_.begin(), window_.end());
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t from = 0, to = 0; from < sorted_.size(); from = to) {
        while (to < sorted_.size() && sorted_[to] == sorted_[from])
            ++to;
        const Token token = sorted_[from];
        if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
        float& logit = logits[static_cast<std::size_t>(token)];
        logit = logit <= 0.0f ? logit * repeat_ : logit / repeat_;
        logit -= static_cast<float>(to - from) * frequency_ + presence_;
    }
}

struct ChainSampler::Candidates {
    std::vector<llama_token_data> all;
};

ChainSampler::ChainSampler(const SamplingParams& params, std::int32_t vocabulary_size,
                           Token end_token, SamplerPtr dry)
    : end_token_(end_token),
      penalties_(params),
      dropped_below_(params.typical_p < 1.0f || params.mirostat != 0
                         ? kTypicalRange
                         : std::numeric_limits<float>::infinity()),
      top_n_sigma_(params.top_n_sigma),
      dry_(std::move(dry)),
      chain_(make_chain(params, vocabulary_size)),
      candidates_(std::make_unique<Candidates>()) {
    for (const auto& [token, bias] : params.logit_bias) {
        if (token >= 0 && token < vocabulary_size) bias_.emplace_back(token, bias);
    }
    candidates_->all.resize(static_cast<std::size_t>(vocabulary_size));
}

ChainSampler::~ChainSampler() = default;

Token ChainSampler::sample(std::span<const float> logits, TokenMask mask) {
    Token token = -1;
    if (bias_.empty() && !penalties_.active()) {
        token = choose(logits, mask);
    } else {
        adjusted_.assign(logits.begin(), logits.end());
        for (const auto& [id, bias] : bias_) {
            if (static_cast<std::size_t>(id) >= adjusted_.size()) continue;
            float& logit = adjusted_[static_cast<std::size_t>(id)];
            logit = bias <= kBanningBias ? std::numeric_limits<float>::quiet_NaN() : logit + bias;
        }
        penalties_.apply(adjusted_);
        token = choose(adjusted_, mask);
    }
    if (token < 0) token = mask.empty() ? end_token_ : GreedySampler().sample(logits, mask);
    penalties_.observe(token);
    if (dry_) llama_sampler_accept(dry_.get(), token);
    return token;
}

void ChainSampler::observe(std::span<const Token> tokens) {
    for (const Token token : tokens) {
        penalties_.observe(token);
        if (dry_) llama_sampler_accept(dry_.get(), token);
    }
}

Token ChainSampler::choose(std::span<const float> logits, TokenMask mask) {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    auto& all = candidates_->all;
    const std::size_t vocabulary = std::min(logits.size(), all.size());
    const auto for_each = [&](auto visit) {
        if (!mask.empty()) return for_each_allowed(mask, vocabulary, visit);
        for (std::size_t id = 0; id < vocabulary; ++id)
            visit(id);
    };
    std::size_t count = 0;
    for_each([&](std::size_t id) {
        // Not a number and minus infinity both fail this comparison.
        const bool kept = logits[id] > lowest;
        all[count] = {static_cast<llama_token>(id),
                      std::clamp(logits[id], -kLargestLogit, kLargestLogit), 0.0f};
        count += kept ? 1 : 0;
    });
    if (count == 0) return -1;
    llama_token_data_array array{all.data(), count, -1, false};
    refine(array);
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) return -1;
    return array.data[array.selected].id;
}

// llama.cpp's own top_n_sigma leaves what it drops with a logit of minus infinity, which the
// filters behind it do not all bear.
void ChainSampler::refine(llama_token_data_array& candidates) {
    if (dry_) {
        llama_sampler_apply(dry_.get(), &candidates);
        for (std::size_t i = 0; i < candidates.size; ++i)
            candidates.data[i].logit = std::max(candidates.data[i].logit, -kLargestLogit);
    }
    float lowest = -std::numeric_limits<float>::infinity();
    if (top_n_sigma_ > 0.0f) lowest = sigma_floor(candidates, top_n_sigma_);
    if (std::isfinite(dropped_below_))
        lowest = std::max(lowest, highest_logit(candidates) - dropped_below_);
    if (!std::isfinite(lowest)) return;
    llama_token_data* const end = candidates.data + candidates.size;
    llama_token_data* const kept = std::remove_if(
        candidates.data, end,
        [lowest](const llama_token_data& candidate) { return candidate.logit < lowest; });
    candidates.size = static_cast<std::size_t>(kept - candidates.data);
}

}  // namespace fermata
