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

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The filter that finds the candidates; the chain has those behind it.
enum class FirstFilter : std::uint8_t { kGreedy, kTopK, kTopP, kMinP, kNone };

FirstFilter first_filter(const SamplingParams& params) {
    if (params.temperature <= 0.0f) return FirstFilter::kGreedy;
    if (params.mirostat != 0) return FirstFilter::kNone;
    if (params.top_k > 0) return FirstFilter::kTopK;
    if (params.typical_p < 1.0f || params.top_n_sigma > 0.0f) return FirstFilter::kNone;
    if (params.top_p < 1.0f) return FirstFilter::kTopP;
    return params.min_p > 0.0f ? FirstFilter::kMinP : FirstFilter::kNone;
}

void add_filters(llama_sampler* chain, const SamplingParams& params, std::uint32_t seed) {
    const auto keep = static_cast<std::size_t>(params.min_keep);
    if (params.typical_p < 1.0f)
        llama_sampler_chain_add(chain, llama_sampler_init_typical(params.typical_p, keep));
    if (params.top_p < 1.0f && first_filter(params) != FirstFilter::kTopP)
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

// Neighbouring seeds and positions give numbers that have nothing in common (MurmurHash3's end).
std::uint32_t mixed(std::uint32_t seed, std::int32_t position) {
    std::uint64_t bits = (std::uint64_t{seed} << 32) | static_cast<std::uint32_t>(position);
    bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdULL;
    bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return static_cast<std::uint32_t>(bits ^ (bits >> 33));
}

// `range` below the highest logit; minus infinity where candidates are kept at a limit.
float below_highest(const LogitView& view, float range) {
    const float floor = std::min(view.highest(), kLargestLogit) - range;
    return floor > -kLargestLogit ? floor : kLowest;
}

// `deviations` standard deviations below the highest logit.
float sigma_floor(std::span<const TokenLogit> candidates, float deviations) {
    const auto count = static_cast<double>(candidates.size());
    double sum = 0.0;
    for (const auto& [token, logit] : candidates)
        sum += static_cast<double>(logit);
    double squares = 0.0;
    float highest = kLowest;
    for (const auto& [token, logit] : candidates) {
        squares += std::pow(static_cast<double>(logit) - sum / count, 2);
        highest = std::max(highest, logit);
    }
    return highest - deviations * static_cast<float>(std::sqrt(squares / count));
}

bool likelier(const TokenLogit& a, const TokenLogit& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
}

}  // namespace

void RecentTokens::push(Token token) {
    if (limit_ == 0) return;
    ++counts_[token];
    if (tokens_.size() < limit_) return tokens_.push_back(token);
    const auto leaving = counts_.find(std::exchange(tokens_[oldest_], token));
    if (--leaving->second == 0) counts_.erase(leaving);
    oldest_ = (oldest_ + 1) % limit_;
}

void RecentTokens::clear() {
    tokens_.clear();
    counts_.clear();
    oldest_ = 0;
}

Penalties::Penalties(const SamplingParams& params)
    : active_(params.penalty_last_n > 0 &&
              (params.repeat_penalty != 1.0f || params.frequency_penalty != 0.0f ||
               params.presence_penalty != 0.0f)),
      repeat_(params.repeat_penalty),
      frequency_(params.frequency_penalty),
      presence_(params.presence_penalty),
      recent_(active_ ? params.penalty_last_n : 0) {}

void Penalties::apply(std::span<TokenLogit> logits) const {
    auto change = logits.begin();
    for (const auto& [token, count] : counts()) {
        while (change != logits.end() && change->first < token)
            ++change;
        if (change == logits.end()) return;
        float& logit = change->second;
        if (change->first != token) continue;
        logit = logit <= 0.0f ? logit * repeat_ : logit / repeat_;
        logit -= static_cast<float>(count) * frequency_ + presence_;
    }
}

struct ChainSampler::Candidates {
    std::vector<llama_token_data> all;
    // Those of the last draw, with their probabilities; empty: there was no draw.
    std::span<const llama_token_data> drawn;
};

ChainSampler::ChainSampler(const SamplingParams& params, std::int32_t vocabulary_size,
                           Token end_token, SamplerPtr dry)
    : params_(params),
      vocabulary_size_(static_cast<std::size_t>(vocabulary_size)),
      end_token_(end_token),
      penalties_(params),
      dry_(std::move(dry)),
      dry_tokens_(dry_ ? params.dry.penalty_last_n : 0),
      chain_(make_chain(params, vocabulary_size)),
      candidates_(std::make_unique<Candidates>()) {
    std::erase_if(params_.logit_bias, [vocabulary_size](const auto& bias) {
        return bias.first < 0 || bias.first >= vocabulary_size;
    });
}

ChainSampler::~ChainSampler() = default;

Token ChainSampler::sample(std::span<const float> logits, TokenMask mask) {
    const auto known = logits.first(std::min(logits.size(), vocabulary_size_));
    candidates_->drawn = {};
    make_changes(known);
    const Token token = choose(LogitView(known, mask, changes_));
    if (token >= 0) return token;
    return mask.empty() ? end_token_ : GreedySampler().sample(logits, mask);
}

void ChainSampler::observe(std::span<const Token> tokens) {
    for (const Token token : tokens) {
        penalties_.observe(token);
        dry_tokens_.push(token);
        if (dry_) llama_sampler_accept(dry_.get(), token);
    }
}

void ChainSampler::observe_anew(std::span<const Token> tokens) {
    penalties_.forget();
    dry_tokens_.clear();
    if (dry_) llama_sampler_reset(dry_.get());
    observe(tokens);
}

// Mirostat, too, begins its estimate anew.
void ChainSampler::begin_round(std::int32_t position) {
    SamplingParams params = params_;
    params.seed = mixed(params_.seed, position);
    candidates_->drawn = {};
    chain_.reset(make_chain(params, static_cast<std::int32_t>(vocabulary_size_)));
}

void ChainSampler::skip(Token /*token*/) {
    candidates_->drawn = {};
}

TokenLogprobs ChainSampler::draw(Token token, std::int32_t top) const {
    TokenLogprobs result;
    for (const llama_token_data& candidate : candidates_->drawn) {
        if (candidate.p > 0.0f) result.top.emplace_back(candidate.id, std::log(candidate.p));
    }
    const auto found = std::ranges::find(result.top, token, &TokenLogit::first);
    if (found == result.top.end()) return Sampler::draw(token, top);
    result.logprob = found->second;
    std::ranges::sort(result.top, likelier);
    result.top.resize(std::min(result.top.size(), static_cast<std::size_t>(top)));
    return result;
}

void ChainSampler::make_changes(std::span<const float> logits) {
    touched_.clear();
    for (const auto& [token, bias] : params_.logit_bias)
        touched_.push_back(token);
    for (const auto* counts : {&penalties_.counts(), &dry_tokens_.counts()})
        for (const auto& [token, count] : *counts)
            touched_.push_back(token);
    std::ranges::sort(touched_);
    const auto repeated = std::ranges::unique(touched_);
    touched_.erase(repeated.begin(), repeated.end());
    changes_.clear();
    for (const Token token : touched_) {
        if (token >= 0 && static_cast<std::size_t>(token) < logits.size())
            changes_.emplace_back(token, logits[static_cast<std::size_t>(token)]);
    }
    for (const auto& [token, bias] : params_.logit_bias) {
        const auto change = std::ranges::lower_bound(changes_, token, {}, &TokenLogit::first);
        if (change == changes_.end() || change->first != token) continue;
        change->second =
            bias <= kBanningBias ? std::numeric_limits<float>::quiet_NaN() : change->second + bias;
    }
    penalties_.apply(changes_);
    if (dry_) apply_dry();
}

// llama.cpp's DRY looks each candidate up; only recent tokens can lengthen a repetition.
void ChainSampler::apply_dry() {
    auto& all = candidates_->all;
    all.clear();
    for (const auto& [token, logit] : changes_)
        all.push_back({token, std::clamp(logit, -kLargestLogit, kLargestLogit), 0.0f});
    llama_token_data_array array{all.data(), all.size(), -1, false};
    llama_sampler_apply(dry_.get(), &array);
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        if (changes_[i].second > kLowest) changes_[i].second = all[i].logit;
    }
}

Token ChainSampler::choose(const LogitView& view) {
    find_candidates(view);
    if (found_.empty()) return -1;
    auto& all = candidates_->all;
    all.clear();
    for (const auto& [token, logit] : found_)
        all.push_back({token, std::clamp(logit, -kLargestLogit, kLargestLogit), 0.0f});
    const FirstFilter first = first_filter(params_);
    const bool sorted = first == FirstFilter::kTopK || first == FirstFilter::kTopP;
    llama_token_data_array array{all.data(), all.size(), -1, sorted};
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) return -1;
    if (params_.temperature > 0.0f) candidates_->drawn = {array.data, array.size};
    return array.data[array.selected].id;
}

void ChainSampler::find_candidates(const LogitView& view) {
    const auto keep = static_cast<std::size_t>(params_.min_keep);
    switch (first_filter(params_)) {
        case FirstFilter::kGreedy:
            return view.find_top(1, found_);
        case FirstFilter::kTopP:
            return find_likely(view);
        case FirstFilter::kMinP:
            view.find_from(below_highest(view, -std::log(params_.min_p)), found_);
            if (found_.size() < keep) view.find_from(kLowest, found_);
            return;
        case FirstFilter::kTopK:
        case FirstFilter::kNone:
            break;
    }
    // llama.cpp's own top_n_sigma leaves what it drops with a logit of minus infinity, which the
    // filters behind it do not all bear.
    float lowest = kLowest;
    if (params_.top_n_sigma > 0.0f) {
        view.find_from(kLowest, found_);
        if (found_.empty()) return;
        for (auto& [token, logit] : found_)
            logit = std::clamp(logit, -kLargestLogit, kLargestLogit);
        lowest = sigma_floor(found_, params_.top_n_sigma);
    }
    if (params_.typical_p < 1.0f || params_.mirostat != 0)
        lowest = std::max(lowest, below_highest(view, kTypicalRange));
    if (first_filter(params_) == FirstFilter::kNone) return view.find_from(lowest, found_);
    view.find_top(static_cast<std::size_t>(std::max(params_.top_k, params_.min_keep)), found_);
    std::erase_if(found_, [lowest](const TokenLogit& found) { return found.second < lowest; });
}

// The likeliest tokens that together have a probability of top_p.
void ChainSampler::find_likely(const LogitView& view) {
    const float highest = std::min(view.highest(), kLargestLogit);
    if (highest < -kLargestLogit) return view.find_from(kLowest, found_);
    const double wanted = static_cast<double>(params_.top_p) * view.sum_of_exp(highest);
    const auto keep = static_cast<std::size_t>(params_.min_keep);
    const auto weight = [highest](const TokenLogit& found) {
        return std::exp(static_cast<double>(found.second - highest));
    };
    float lowest = highest;
    for (float range = 8.0f; lowest > kLowest; range *= 2.0f) {
        lowest = range > 128.0f ? kLowest : highest - range;
        view.find_from(lowest, found_);
        double sum = 0.0;
        for (const TokenLogit& found : found_)
            sum += weight(found);
        if (sum >= wanted && found_.size() >= keep) break;
    }
    std::ranges::sort(found_, likelier);
    double sum = 0.0;
    std::size_t count = 0;
    while (count < found_.size() && (sum < wanted || count < keep))
        sum += weight(found_[count++]);
    found_.resize(count);
}

}  // namespace fermata
