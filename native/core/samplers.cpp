#include "core/samplers.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fermata {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Most blocks hold nothing higher than what was found before, and that question alone is one the
// compiler answers with vector instructions.
Token highest_of_all(std::span<const float> logits) {
    constexpr std::size_t kBlock = 64;
    float highest = kLowest;
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
        const auto block = logits.subspan(begin, std::min(kBlock, logits.size() - begin));
        int any_higher = 0;
        for (const float logit : block)
            any_higher |= static_cast<int>(logit > highest);
        if (any_higher == 0) continue;
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (!(block[i] > highest)) continue;
            highest = block[i];
            found = begin + i;
        }
    }
    return static_cast<Token>(found);
}

// The first allowed one when no logit is a number above minus infinity.
Token highest_allowed(std::span<const float> logits, TokenMask mask) {
    float highest = kLowest;
    bool any = false;
    std::size_t found = 0;
    for_each_allowed(mask, logits.size(), [&](std::size_t id) {
        if (any && !(logits[id] > highest)) return;
        if (logits[id] > highest) highest = logits[id];
        found = id;
        any = true;
    });
    return static_cast<Token>(found);
}

}  // namespace

Token GreedySampler::sample(std::span<const float> logits, TokenMask mask) {
    return mask.empty() ? highest_of_all(logits) : highest_allowed(logits, mask);
}

ScriptedSampler::ScriptedSampler(std::vector<Token> script, Token end_token,
                                 std::unique_ptr<Sampler> then)
    : script_(std::move(script)), end_token_(end_token), then_(std::move(then)) {}

Token ScriptedSampler::sample(std::span<const float> logits, TokenMask mask) {
    const bool is_over = next_ == script_.size();
    if (is_over && then_) return then_->sample(logits, mask);
    const Token wanted = is_over ? end_token_ : script_[next_++];
    return allows(mask, wanted) ? wanted : highest_allowed(logits, mask);
}

void ScriptedSampler::observe(std::span<const Token> tokens) {
    if (then_) then_->observe(tokens);
}

void ScriptedSampler::observe_anew(std::span<const Token> tokens) {
    if (then_) then_->observe_anew(tokens);
}

void ScriptedSampler::begin_round(std::int32_t position) {
    if (then_) then_->begin_round(position);
}

void ScriptedSampler::skip(Token token) {
    if (next_ < script_.size() && script_[next_] == token) ++next_;
    if (then_) then_->skip(token);
}

}  // namespace fermata
